// The hashes of the scripts inside a page, as a content security policy names them: what the server lets run.
//   node script-hashes.mjs dist/index.html > dist/script-hashes.txt
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

const page = readFileSync(process.argv[2], 'utf8');
for (const [, body] of page.matchAll(/<script\b[^>]*>([\s\S]*?)<\/script>/g)) {
    if (body) console.log(`'sha256-${createHash('sha256').update(body).digest('base64')}'`);
}
