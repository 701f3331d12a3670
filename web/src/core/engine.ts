// The page's two cores: one here for what must be there within a frame, one in a worker for the rest.
import packed_base64 from 'virtual:core';
import Background from './background?worker&inline';
import { Core, failed, unpack, type Answer, type Request } from './module';

interface Waiting {
    requests: Request[];
    answered: (answers: string[]) => void;
}

export class Engine {
    private waiting = new Map<number, Waiting>();
    private next = 0;

    private constructor(
        private core: Core,
        private worker: Worker | undefined,
    ) {
        worker?.addEventListener('message', (event: MessageEvent) => {
            const { id, answers } = event.data as { id: number; answers: string[] };
            this.waiting.get(id)?.answered(answers);
            this.waiting.delete(id);
        });
        worker?.addEventListener('error', () => this.abandon_worker());
        worker?.addEventListener('messageerror', () => this.abandon_worker());
    }

    static async start(): Promise<Engine> {
        const module = await unpack(packed_base64);
        let worker: Worker | undefined;
        try {
            worker = new Background();
            worker.postMessage({ module });
        } catch {
            worker = undefined; // a browser that allows none here: the page's own core answers, a little less smoothly
        }
        return new Engine(new Core(module), worker);
    }

    ask<T>(request: Request): Answer<T> {
        return this.core.ask<T>(request);
    }

    text(request: Request): string {
        return this.core.text(request);
    }

    /// A worker that breaks down leaves its questions to the page's own core.
    private abandon_worker(): void {
        this.worker = undefined;
        for (const { requests, answered } of this.waiting.values()) answered(requests.map((request) => this.core.text(request)));
        this.waiting.clear();
    }

    async later<T>(requests: Request[]): Promise<Answer<T>[]> {
        const plain = JSON.parse(JSON.stringify(requests)) as Request[];
        const answers = await new Promise<string[]>((answered) => {
            if (!this.worker) {
                answered(plain.map((request) => this.core.text(request)));
                return;
            }
            const id = this.next++;
            this.waiting.set(id, { requests: plain, answered });
            this.worker.postMessage({ id, requests: plain });
        });
        return answers.map((text) => JSON.parse(text) as Answer<T>);
    }
}

export { failed };
