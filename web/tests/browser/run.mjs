// The page in a real browser, from a file, without a network: every control, dragging, dropping, the tour, links, a phone.
//   node tests/browser/run.mjs [FOLDER]      screenshots go to FOLDER
// Ends with 0 when everything went well; otherwise says what did not.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { gzipSync } from 'node:zlib';
import { chromium } from 'playwright-core';
import { effort_of_a_change } from './effort.mjs';

const page_file = fileURLToPath(new URL('../../dist/index.html', import.meta.url));
const page_url = pathToFileURL(page_file).href;
const folder = process.argv[2] ?? join(tmpdir(), 'roofline-page');
mkdirSync(folder, { recursive: true });
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const patience = 60_000;

const browser = await chromium.launch({
    executablePath: process.env.ROOFLINE_CHROMIUM ?? '/usr/bin/chromium',
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
        '--disable-component-update', '--disable-sync'],
});

const complaints = [];
async function open(fragment = '', options = {}, there = '[data-roofline]') {
    const page = await browser.newPage({ viewport: { width: 1440, height: 1000 }, colorScheme: 'light', ...options });
    page.setDefaultTimeout(patience);
    page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
    page.on('request', (request) => {
        if (/^https?:/.test(request.url())) complaints.push(`asked the network for ${request.url()}`);
    });
    await page.goto(page_url + fragment);
    await page.waitForSelector(there);
    return page;
}
const shot = (page, name, full = false) => page.screenshot({ path: join(folder, `${name}.png`), fullPage: full });
const command = (page) => page.locator('[data-command]').innerText();
const headline = (page) => page.locator('[data-headline]').innerText();
/// Waits until a condition in the page holds; what it is called goes into the message.
async function until(page, what, check, argument) {
    await page.waitForFunction(check, argument, { timeout: patience }).catch(() => assert.fail(`never came true: ${what}`));
}
const command_has = (page, text) =>
    until(page, `the command has ${text}`, (wanted) => document.querySelector('[data-command]')?.textContent?.includes(wanted), text);

const tests = {
    async 'the page is a quick download'() {
        const size = gzipSync(readFileSync(page_file), { level: 9 }).length;
        console.log(`    ${size} bytes gzipped`);
        assert.ok(size < 400_000, `${size} bytes gzipped`);
    },

    async 'it loads from a file and answers'() {
        const page = await open();
        assert.match(await headline(page), /^[\d,.]+\s*tokens\/s$/);
        assert.equal(await command(page), 'roofline predict llama-3.1-8b h100-sxm --batch 8 --prompt 1024 --context 4096');
        assert.ok((await page.locator('path[data-point]').count()) > 15);
        await until(page, 'advice arrives', () => document.querySelectorAll('.move').length > 2);
        await until(page, 'the batch curve arrives', () => document.querySelectorAll('section[aria-label="Batch sweep"] circle').length > 5);
        await shot(page, 'desktop', true);
        await page.close();
    },

    async 'every control changes the question'() {
        const page = await open();
        for (const [id, value, flag] of [
            ['batch', '32', '--batch 32'], ['prompt', '2048', '--prompt 2048'], ['context', '8192', '--context 8192'],
            ['generate', '256', '--generate 256'], ['tp', '2', '--tp 2'],
        ]) {
            const before = await headline(page);
            await page.fill(`#${id}`, value);
            await command_has(page, flag);
            assert.notEqual(`${id} ${before}`, '');
        }
        for (const [id, value, flag] of [['dtype', 'fp8', '--dtype fp8'], ['kv', 'fp8', '--kv-cache-dtype fp8']]) {
            await page.selectOption(`#${id}`, value);
            await command_has(page, flag);
        }
        await page.click('summary:has-text("More")');
        for (const [id, value, flag] of [['pp', '2', '--pp 2'], ['dp', '2', '--dp 2']]) {
            await page.fill(`#${id}`, value);
            await command_has(page, flag);
        }
        await page.selectOption('#profile', 'eager');
        await command_has(page, '--profile eager');
        await page.fill('#price', '2.5');
        await command_has(page, '--price 2.5');
        await until(page, 'the cost of tokens is said', () => /a million tokens cost\s*[\d.]+/.test(document.querySelector('section[aria-label="The answer"]')?.textContent ?? ''));
        await page.check('#experts');
        await command_has(page, '--enable-expert-parallel');
        await page.uncheck('#experts');
        const before = await headline(page);
        await page.locator('input[aria-label="Batch, slider"]').focus();
        for (let i = 0; i < 6; ++i) await page.keyboard.press('ArrowRight');
        await until(page, 'the slider moves the answer', (old) => document.querySelector('[data-headline]')?.textContent !== old, before);
        await page.close();
    },

    async 'a model and a device are chosen by typing'() {
        const page = await open();
        await page.click('#model');
        await page.fill('#model', 'qwen3 30b');
        await page.keyboard.press('Enter');
        await command_has(page, 'qwen3-30b-a3b');
        await page.click('#device');
        await page.fill('#device', 'mi300x');
        await page.keyboard.press('Enter');
        await command_has(page, 'mi300x');
        await page.close();
    },

    async 'every profile and type that the page offers is one'() {
        const page = await open();
        await page.click('summary:has-text("More")');
        for (const id of ['dtype', 'kv', 'profile']) {
            const values = await page.locator(`#${id} option`).evaluateAll((all) => all.map((one) => one.value));
            for (const value of values) {
                await page.selectOption(`#${id}`, value);
                await page.waitForTimeout(60);
                assert.equal(await page.locator('.problem').count(), 0, `${id} ${value}`);
            }
        }
        await page.close();
    },

    async 'what makes no sense is said, and the last answer stays'() {
        const page = await open();
        await page.fill('#batch', 'many');
        await page.waitForSelector('.problem');
        assert.match(await page.locator('.problem').innerText(), /batch/);
        assert.match(await headline(page), /tokens/);
        await page.fill('#batch', '4');
        await until(page, 'the problem goes', () => !document.querySelector('.problem'));
        await page.close();
    },

    async 'a roof is dragged, and a double click resets it'() {
        const page = await open();
        const before = await headline(page);
        const line = page.locator('line[data-roof="memory.bandwidth"]');
        const at = await line.evaluate((element) => {
            const box = element.ownerSVGElement.getBoundingClientRect();
            const value = (name) => Number(element.getAttribute(name));
            // Near its lower end, where no point lies on it.
            return { x: box.left + value('x1') * 0.8 + value('x2') * 0.2, y: box.top + value('y1') * 0.8 + value('y2') * 0.2 };
        });
        await page.mouse.move(at.x, at.y);
        await page.mouse.down();
        await page.mouse.move(at.x, at.y - 30, { steps: 5 });
        await page.mouse.up();
        await command_has(page, '--set memory.bandwidth=');
        assert.notEqual(await headline(page), before);
        await shot(page, 'dragged');
        await page.locator('line[data-roof="memory.bandwidth"]').dispatchEvent('dblclick');
        await until(page, 'the roof is as before', () => !document.querySelector('[data-command]')?.textContent?.includes('--set'));
        assert.equal(await headline(page), before);
        await page.locator('line[data-roof="matrix.bf16"]').focus();
        await page.keyboard.press('PageUp');
        await command_has(page, '--set matrix.bf16=2x');
        await page.keyboard.press('Home');
        await until(page, 'Home resets', () => !document.querySelector('[data-command]')?.textContent?.includes('--set'));
        await page.close();
    },

    async 'a point explains itself and is pinned with its derivation'() {
        const page = await open();
        const point = page.locator('path[data-point="decode/layers.attention.core"]');
        await point.hover();
        await until(page, 'a card', () => document.querySelector('.card')?.textContent?.includes('layers.attention.core'));
        await shot(page, 'hovered');
        await point.click();
        await until(page, 'a derivation', () => document.querySelector('pre')?.textContent?.includes('intensity'));
        assert.match(await page.locator('pre').innerText(), /FLOP\/B/);
        await page.close();
    },

    async 'the wheel zooms and all can be shown again'() {
        const page = await open();
        const box = await page.locator('[data-roofline]').boundingBox();
        await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
        await page.mouse.wheel(0, -400);
        await page.getByRole('button', { name: 'show all' }).click();
        await until(page, 'no zoom', () => ![...document.querySelectorAll('button')].some((one) => one.textContent === 'show all'));
        await page.close();
    },

    async 'two fingers zoom'() {
        const page = await open('', { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true });
        await page.locator('[data-roofline]').scrollIntoViewIfNeeded();
        const box = await page.locator('[data-roofline]').boundingBox();
        const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
        const touches = await page.context().newCDPSession(page);
        const touch = (type, apart) => touches.send('Input.dispatchTouchEvent', {
            type, touchPoints: type === 'touchEnd' ? [] : [{ x: x - apart, y, id: 1 }, { x: x + apart, y, id: 2 }],
        });
        await touch('touchStart', 30);
        for (const apart of [40, 55, 70, 90]) await touch('touchMove', apart);
        await touch('touchEnd', 0);
        await until(page, 'a zoom', () => [...document.querySelectorAll('button')].some((one) => one.textContent === 'show all'));
        await page.close();
    },

    async 'advice is applied with one click'() {
        const page = await open();
        await page.waitForSelector('.move button');
        const before = await command(page);
        await page.locator('.move button').first().click();
        await until(page, 'the command changes', (old) => document.querySelector('[data-command]')?.textContent !== old, before);
        await page.waitForTimeout(300);
        assert.equal(await page.locator('.problem').count(), 0);
        await page.close();
    },

    async 'scenarios are compared'() {
        const page = await open();
        await page.getByRole('button', { name: 'Compare' }).click();
        await page.fill('#batch', '64');
        await page.getByRole('button', { name: 'Compare' }).click();
        await page.selectOption('#dtype', 'fp8');
        await until(page, 'three scenarios', () => document.querySelectorAll('.compared li').length === 3);
        await page.getByRole('button', { name: 'Compare' }).click();
        await page.click('#device');
        await page.fill('#device', 'b200-sxm');
        await page.keyboard.press('Enter');
        await until(page, 'four scenarios', () => document.querySelectorAll('.compared li').length === 4);
        assert.ok(await page.getByRole('button', { name: 'Compare' }).isDisabled());
        await shot(page, 'compared');
        await page.close();
    },

    async 'a dropped config becomes the model'() {
        const page = await open();
        await drop(page, 'config.json', JSON.stringify(small_llama));
        await command_has(page, 'predict config.json');
        assert.equal(await page.locator('.problem').count(), 0);
        await drop(page, 'config.json', '{"model_type": "llama", "hidden_size": -3}');
        await page.waitForSelector('.refused');
        assert.match(await page.locator('.refused').innerText(), /config\.json/);
        await page.close();
    },

    async 'a dropped GGUF is read as far as its header goes'() {
        const page = await open();
        const metadata = {
            'general.architecture': 'llama', 'general.name': 'Dropped', 'llama.block_count': 16, 'llama.embedding_length': 2048,
            'llama.feed_forward_length': 8192, 'llama.attention.head_count': 32, 'llama.attention.head_count_kv': 8,
            'llama.context_length': 8192, 'llama.vocab_size': 128256,
        };
        await drop(page, 'mine.gguf', gguf(metadata, 128256));
        await command_has(page, 'predict mine.gguf');
        await until(page, 'its name is there', () => document.querySelector('section[aria-label="The roofline"] h2')?.textContent?.includes('Dropped'));
        assert.equal(await page.locator('.problem').count(), 0);
        await drop(page, 'broken.gguf', 'GGUF?');
        await page.waitForSelector('.refused');
        assert.match(await page.locator('.refused').innerText(), /broken\.gguf/);
        await page.close();
    },

    async 'safetensors beside a config say how large its weights are'() {
        const page = await open();
        const weights = safetensors('model.layers.0.mlp.down_proj.weight', [2048, 8192]);
        await drop_files(page, { 'config.json': JSON.stringify(small_llama), 'model.safetensors': weights });
        await command_has(page, 'predict config.json');
        await until(page, 'a note says so', () => document.querySelector('.notes')?.textContent?.includes('1 safetensors file'));
        await page.close();
        const other = await open();
        await drop_files(other, { 'model.safetensors': weights });
        await other.waitForSelector('.refused');
        assert.match(await other.locator('.refused').innerText(), /config\.json too/);
        await other.close();
    },

    async 'every dropped file that cannot be read is named in a line of its own'() {
        const page = await open();
        const before = await command(page);
        for (const [name, content, why] of [
            ['notes.txt', 'hello', 'none of config.json'], ['empty.json', '', 'empty.json'], ['half.json', '{"model_type": ', 'half.json'],
            ['advice.json', '{"schema": "roofline.advise/1"}', 'an answer of advise'], ['trace.json', '{"traceEvents": []}', 'roofline analyze trace.json'],
            ['picture.png', '\x89PNG', 'picture.png'], ['short.safetensors', 'abc', 'ends before its header'],
        ]) {
            await drop(page, name, content);
            await until(page, `${name} is refused`, (wanted) => document.querySelector('.refused')?.textContent?.includes(wanted), why);
            assert.equal(await page.locator('.refused p').count(), 1);
            assert.ok((await page.locator('.refused p').innerText()).startsWith(name), name);
        }
        // One that is broken hides no other, and is not hidden by one that is not.
        await drop_files(page, { 'a.json': '{', 'config.json': JSON.stringify(small_llama), 'b.gguf': 'no' });
        await command_has(page, 'predict config.json');
        await until(page, 'two lines', () => document.querySelectorAll('.refused p').length === 2);
        assert.notEqual(await command(page), before);
        await shot(page, 'refused');
        await page.getByRole('button', { name: 'close' }).click();
        await until(page, 'no lines', () => !document.querySelector('.refused'));
        await page.close();
    },

    async 'Back undoes a step, Forward does it again'() {
        const page = await open();
        const first = await headline(page);
        const follows = (text) => until(page, `the link has ${text}`, (wanted) => location.hash.includes(wanted), text);
        await follows('batch=8');
        await page.waitForTimeout(1000);
        await page.fill('#batch', '32');
        await follows('batch=32');
        await page.waitForTimeout(1000);
        await page.selectOption('#dtype', 'fp8');
        await follows('dtype=fp8');
        // Another look is no step.
        await page.getByRole('group', { name: 'Stage shown' }).getByRole('button', { name: 'decode' }).click();
        await follows('stage=decode');
        await page.waitForTimeout(1000);
        await drop(page, 'few.json', JSON.stringify(many_records(20)));
        await follows('files=');
        await page.goBack();
        await until(page, 'the report is gone', () => !document.querySelector('.compared')?.textContent?.includes('20 records'));
        await command_has(page, '--dtype fp8');
        await page.goBack();
        await until(page, 'no fp8', () => !document.querySelector('[data-command]')?.textContent?.includes('fp8'));
        await command_has(page, '--batch 32');
        await page.goBack();
        await command_has(page, '--batch 8');
        await until(page, 'the first answer', (wanted) => document.querySelector('[data-headline]')?.innerText === wanted, first);
        await page.goForward();
        await command_has(page, '--batch 32');
        await page.close();
    },

    async 'a dropped report appears as points, thousands of them too'() {
        const page = await open();
        const report = many_records(3000);
        await drop(page, 'trace.json', JSON.stringify(report));
        await until(page, 'it is listed', () => document.querySelector('.compared')?.textContent?.includes('3000 records'));
        const painted = await page.locator('canvas').evaluate((canvas) => {
            const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            let count = 0;
            for (let i = 3; i < pixels.length; i += 4) if (pixels[i] > 0) ++count;
            return count;
        });
        assert.ok(painted > 1000, `${painted} pixels`);
        await shot(page, 'report');
        await page.close();
    },

    async 'the tour has seven steps'() {
        const page = await open();
        await page.getByRole('button', { name: 'Tour' }).click();
        for (let step = 1; step <= 7; ++step) {
            await until(page, `step ${step}`, (wanted) => document.querySelector('.tour h2')?.textContent?.startsWith(wanted), `${step} of 7`);
            await page.waitForTimeout(80);
            const text = await page.locator('.tour').innerText();
            assert.doesNotMatch(text, /undefined|NaN|unknown/);
            if (step === 2) await shot(page, 'tour');
            if (step < 7) await page.getByRole('button', { name: 'Next' }).click();
        }
        await page.getByRole('button', { name: 'Done' }).click();
        assert.equal(await page.locator('.tour').count(), 0);
        await page.close();
    },

    async 'a link shows what was seen'() {
        const page = await open();
        await page.fill('#batch', '16');
        await page.selectOption('#dtype', 'fp8');
        await page.getByRole('button', { name: 'Compare' }).click();
        await page.fill('#batch', '48');
        await page.getByRole('group', { name: 'Stage shown' }).getByRole('button', { name: 'decode' }).click();
        await until(page, 'the link follows', () => location.hash.includes('batch=48') && location.hash.includes('stage=decode'));
        const [seen, asked, link] = [await headline(page), await command(page), await page.evaluate(() => location.hash)];
        await page.close();
        const other = await open(link);
        await command_has(other, '--batch 48');
        assert.equal(await command(other), asked);
        assert.equal(await headline(other), seen);
        assert.equal(await other.locator('.compared li').count(), 2);
        await other.close();
    },

    async 'a link carries small files that were dropped, and names large ones'() {
        const page = await open();
        await drop(page, 'config.json', JSON.stringify(small_llama, null, 4));
        await command_has(page, 'predict config.json');
        await page.getByRole('button', { name: 'Compare' }).click();
        await page.selectOption('#dtype', 'fp8');
        await drop(page, 'few.json', JSON.stringify(many_records(20)));
        await until(page, 'the report is listed', () => document.querySelector('.compared')?.textContent?.includes('20 records'));
        await until(page, 'the link follows', () => location.hash.includes('files=') && location.hash.includes('dtype=fp8'));
        await page.waitForTimeout(400);
        const [seen, link] = [await headline(page), await page.evaluate(() => location.hash)];
        console.log(`    a link of ${link.length} letters`);
        await page.close();
        const other = await open(link);
        await command_has(other, 'predict config.json');
        assert.equal(await headline(other), seen);
        assert.equal(await other.locator('.problem').count(), 0);
        assert.equal(await other.locator('.compared li').count(), 3);
        assert.match(await other.locator('.compared').innerText(), /20 records/);
        await drop(other, 'large.gguf', gguf({ 'general.architecture': 'llama', 'general.name': 'Large', 'llama.block_count': 16,
            'llama.embedding_length': 2048, 'llama.feed_forward_length': 8192, 'llama.attention.head_count': 32,
            'llama.attention.head_count_kv': 8, 'llama.context_length': 8192, 'llama.vocab_size': 128256 }, 128256));
        await other.waitForSelector('.left-out');
        assert.match(await other.locator('.left-out').innerText(), /large\.gguf.*too large/);
        await other.close();
        const broken = await open('#model=llama-3.1-8b&device=h100-sxm&files=AAAA');
        assert.match(await headline(broken), /tokens/);
        await broken.close();
    },

    async 'a broken link says what is wrong with it'() {
        const page = await open('#model=llama-3.1-8b&device=h100-sxm&batch=-1&view=a,b&vs=%%%', {}, '[role=status] button');
        assert.match(await page.locator('main').innerText(), /--batch: found "-1"/);
        await page.getByRole('button', { name: 'Start over' }).click();
        await page.waitForSelector('[data-roofline]');
        await page.close();
    },

    async 'pictures and tables are saved'() {
        const page = await open();
        for (const [name, ending] of [['Picture, SVG', 'svg'], ['Picture, PNG', 'png'], ['Operators, CSV', 'csv'], ['Report, JSON', 'json']]) {
            if (!(await page.locator('.menu').evaluate((menu) => menu.open))) await page.click('.menu summary');
            const [saved] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name }).click()]);
            assert.equal(saved.suggestedFilename(), `roofline.${ending}`);
            const bytes = readFileSync(await saved.path());
            if (ending === 'json') assert.equal(JSON.parse(bytes.toString()).schema, 'roofline.report/1');
            if (ending === 'csv') assert.match(bytes.toString(), /^stage,operator,/);
            if (ending === 'svg') assert.match(bytes.toString(), /^<svg[\s\S]*<\/svg>$/);
            if (ending === 'png') assert.equal(bytes.subarray(1, 4).toString(), 'PNG');
            writeFileSync(join(folder, `saved.${ending}`), bytes);
        }
        await page.close();
    },

    async 'the table sorts and leads to points'() {
        const page = await open();
        await page.getByRole('button', { name: 'expected', exact: true }).last().click();
        const first = await page.locator('section[aria-label="Operators"] tbody tr').first().innerText();
        assert.match(first, /gate_up/);
        await page.locator('section[aria-label="Operators"] tbody button').first().click();
        await page.waitForSelector('pre');
        await page.close();
    },

    async 'plans are searched'() {
        const page = await open();
        await page.fill('#plan-count', '2');
        await page.getByRole('button', { name: 'search' }).click();
        await until(page, 'plans arrive', () => document.querySelectorAll('section[aria-label="Plans"] circle').length > 1);
        await page.getByRole('button', { name: 'take' }).click();
        await page.waitForTimeout(300);
        assert.equal(await page.locator('.problem').count(), 0);
        await page.close();
    },

    async 'a phone shows all of it'() {
        const page = await open('', { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, hasTouch: true, isMobile: true });
        await page.waitForSelector('.move');
        const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        assert.ok(wider <= 0, `${wider} pixels too wide`);
        await shot(page, 'phone', true);
        await page.close();
    },

    async 'it is readable in the dark and for those who cannot see it'() {
        for (const colorScheme of ['light', 'dark']) {
            const page = await open('', { colorScheme });
            await page.waitForSelector('.move');
            await page.locator('section[aria-label="Operators"] tbody button').nth(3).click();
            await page.getByRole('button', { name: 'Tour' }).click();
            await page.waitForTimeout(300);
            await page.evaluate(axe);
            const found = await page.evaluate(() => window.axe.run());
            const serious = found.violations.filter((one) => one.impact === 'serious' || one.impact === 'critical');
            assert.deepEqual(serious.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`), []);
            await shot(page, `tour-${colorScheme}`);
            await page.getByRole('button', { name: 'close' }).click();
            await page.close();
        }
    },

    async 'a page that the program writes sorts, lights up, filters, searches and zooms'() {
        const program = process.env.ROOFLINE_BINARY;
        if (!program) return console.log('    left out: ROOFLINE_BINARY names no program');
        const written = (name, ...command) => {
            const file = join(folder, `${name}.html`);
            execFileSync(program, [...command, '-o', file]);
            return pathToFileURL(file).href;
        };
        const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, bypassCSP: true }); // axe is put into the page
        page.on('pageerror', (error) => complaints.push(error.message));
        await page.goto(written('predict', 'predict', 'llama-3.1-8b', 'h200-sxm'));
        const table = page.locator('section:has(h2) table').first();
        const column = (title) => table.evaluate((element, wanted) => {
            const at = [...element.querySelectorAll('th')].findIndex((head) => head.textContent === wanted);
            return [...element.querySelectorAll('tbody tr')].map((row) => row.children[at].textContent);
        }, title);
        await table.getByRole('button', { name: 'expected' }).click();
        const times = (await column('expected')).map((text) => parseFloat(text) * { ms: 1e3, us: 1, ns: 1e-3 }[text.split(' ')[1]]);
        assert.deepEqual(times, [...times].sort((a, b) => b - a), 'largest first, whatever the unit');
        await table.locator('tr', { hasText: 'layers.ffn.down' }).hover();
        assert.ok((await page.locator('svg .here').count()) > 1, 'the marks of a row light up');
        await page.locator('.controls input[value=prefill]').uncheck();
        assert.equal(await page.locator('section table tr:not(.gone)[data-stage^=prefill]').count(), 0);
        for (const kind of ['zooms', 'still']) {
            const figure = page.locator(`figure.${kind}`).first();
            await figure.scrollIntoViewIfNeeded();
            await page.waitForTimeout(500); // a wheel that is scrolling the page does not zoom
            const box = await figure.boundingBox();
            await page.mouse.move(box.x + box.width / 2, box.y + Math.min(box.height, 600) / 2);
            await page.mouse.wheel(0, -300);
            await until(page, `${kind} is zoomed`, (wanted) => document.querySelector(`figure.${wanted}`).classList.contains('zoomed'), kind);
            await figure.getByRole('button', { name: 'whole picture' }).click();
            await until(page, `${kind} is whole`, (wanted) => !document.querySelector(`figure.${wanted}`).classList.contains('zoomed'), kind);
        }
        await page.evaluate(axe);
        const found = await page.evaluate(() => window.axe.run());
        assert.deepEqual(found.violations.filter((one) => one.impact === 'serious' || one.impact === 'critical').map((one) => `${one.id} ${one.nodes[0].html.slice(0, 200)}`), []);
        await page.goto(written('devices', 'devices'));
        await page.fill('input.find', 'h100');
        assert.deepEqual(await page.locator('tbody tr:visible td:first-child').allInnerTexts(), ['h100-nvl', 'h100-pcie', 'h100-sxm']);
        await page.setViewportSize({ width: 390, height: 844 });
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
        await page.close();
    },

    async 'what a change costs is reported'() {
        for (const fragment of ['#model=llama-3.1-8b&device=h100-sxm&batch=8&prompt=1024&context=4096', '#model=deepseek-v3&device=h200-sxm&batch=8&prompt=1024&context=4096&tp=8']) {
            const page = await open(fragment);
            await page.waitForSelector('.move');
            await page.waitForTimeout(600);
            const { script, layout, paint, all } = await effort_of_a_change(browser, page);
            const answer = Number(/took ([\d.]+) ms/.exec(await page.locator('footer').innerText())?.[1]);
            assert.ok([script, layout, paint, answer].every((time) => time > 0));
            const text = `${all.toFixed(1)} ms of the page's thread: script ${script.toFixed(1)} (the last answer ${answer.toFixed(1)}), layout ${layout.toFixed(1)}, paint ${paint.toFixed(1)}`;
            console.log(`    ${new URLSearchParams(fragment.slice(1)).get('model')}: a change takes ${text} (mean of 40, not asserted)`);
            await page.close();
        }
    },
};

/// Files by name, as text or as bytes.
async function drop_files(page, files) {
    const packed = Object.entries(files).map(([name, content]) => [name, Buffer.from(content).toString('base64')]);
    const transfer = await page.evaluateHandle((all) => {
        const data = new DataTransfer();
        for (const [name, base64] of all) data.items.add(new File([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))], name));
        return data;
    }, packed);
    await page.dispatchEvent('body', 'drop', { dataTransfer: transfer });
}
const drop = (page, name, text) => drop_files(page, { [name]: text });

const small_llama = {
    architectures: ['LlamaForCausalLM'], model_type: 'llama', hidden_size: 2048, intermediate_size: 8192, num_hidden_layers: 16,
    num_attention_heads: 32, num_key_value_heads: 8, vocab_size: 128256, torch_dtype: 'bfloat16', tie_word_embeddings: true,
};

/// A GGUF without tensors: magic, version, counts, then metadata as (name, type, value). Type 4 is uint32, 8 a string, 9 an
/// array. A vocabulary makes its header longer than what the page reads first.
function gguf(metadata, words) {
    const parts = [];
    const number = (value, bytes) => {
        const buffer = Buffer.alloc(bytes);
        if (bytes === 8) buffer.writeBigUInt64LE(BigInt(value));
        else buffer.writeUInt32LE(value);
        parts.push(buffer);
    };
    const text = (value) => {
        number(Buffer.byteLength(value), 8);
        parts.push(Buffer.from(value));
    };
    parts.push(Buffer.from('GGUF'));
    number(3, 4);
    number(0, 8);
    number(Object.keys(metadata).length + 1, 8);
    for (const [name, value] of Object.entries(metadata)) {
        text(name);
        number(typeof value === 'string' ? 8 : 4, 4);
        if (typeof value === 'string') text(value);
        else number(value, 4);
    }
    text('tokenizer.ggml.tokens');
    number(9, 4);
    number(8, 4);
    number(words, 8);
    for (let i = 0; i < words; ++i) text(`a long word of the vocabulary ${i}`);
    return Buffer.concat(parts);
}

/// One tensor in 8 bits, of which only the header is there to be read: 8 bytes of length, JSON, the data.
function safetensors(name, shape) {
    const size = shape.reduce((product, one) => product * one, 1);
    const header = Buffer.from(JSON.stringify({ [name]: { dtype: 'F8_E4M3', shape, data_offsets: [0, size] } }));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    return Buffer.concat([length, header, Buffer.alloc(size)]);
}

/// A report as `analyze` would write it, of a device of round numbers.
function many_records(count) {
    const figure = (value, unit) => ({ value, unit, source: 's' });
    const records = Array.from({ length: count }, (_, i) => {
        const flops = 1e9 * (1 + (i % 97)), bytes = 1e7 * (1 + (i % 89));
        const limit = Math.max(flops / 1e14, bytes / 1e12);
        return {
            name: `kernel ${i}`, kind: 'gemm', group: 'ffn', count: 1, engine: 'matrix', dtype: 'bf16', flops, bytes: { memory: bytes },
            time_s: { limit, attainable: limit, expected: limit, measured: limit * (1.1 + (i % 13) / 5) }, origin: 'traced',
        };
    });
    return {
        schema: 'roofline.report/1', run: { version: '0.1.0', command: 'roofline analyze trace', time: '' }, verb: 'analyze', title: 'a trace',
        device: {
            schema: 'roofline.device/1', name: 'round', title: 'A round device', vendor: 'nobody', year: 2024, kind: 'gpu',
            engines: [{ id: 'matrix', rates: { bf16: figure(1e14, 'FLOP/s') } }],
            memory: [{ id: 'memory', technology: 'HBM', capacity: figure(1e11, 'B'), bandwidth: figure(1e12, 'B/s') }],
            sources: { s: { kind: 'assumed', title: 'made for this test', date: '2026' } },
        },
        stages: [{ stage: 'decode', batch: 1, tokens: 1, context: 100, time_s: { limit: 1, attainable: 1, expected: 1, measured: 2 }, records }],
        notes: [],
    };
}

const only = process.env.ONLY;
let broken = 0;
for (const [name, test] of Object.entries(tests)) {
    if (only && !name.includes(only)) continue;
    complaints.length = 0;
    try {
        await test();
        assert.deepEqual(complaints, [], 'the console is silent');
        console.log(`  ok    ${name}`);
    } catch (error) {
        ++broken;
        console.log(`  FAILS ${name}\n        ${error instanceof Error ? error.message.split('\n').slice(0, 12).join('\n        ') : error}`);
        for (const context of browser.contexts()) for (const page of context.pages()) {
            await shot(page, `failed-${broken}`).catch(() => {});
            await page.close();
        }
    }
}
await browser.close();
console.log(broken === 0 ? 'the page does what it should' : `${broken} of the page's tests fail; screenshots in ${folder}`);
process.exit(broken === 0 ? 0 : 1);
