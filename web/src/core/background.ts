// Questions that take longer than a frame (advice, sweeps, plans), answered one after another off the page's thread.
import { Core, type Request } from './module';

let core: Core | undefined;

onmessage = (event: MessageEvent) => {
    const message = event.data as { module?: WebAssembly.Module; id?: number; requests?: Request[] };
    if (message.module) core = new Core(message.module);
    if (message.id !== undefined && message.requests && core) {
        const asked = core;
        postMessage({ id: message.id, answers: message.requests.map((request) => asked.text(request)) });
    }
};
