// What a change costs the page's thread until the frame that shows it is painted: script, style, layout, paint. Time that
// the thread really ran, as the browser's own trace has it, so that a busy machine counts for less.

const changes = 40;
const kinds = {
    script: ['FireAnimationFrame', 'TimerFire'], // the changes below are made in animation frames
    layout: ['UpdateLayoutTree', 'Layout'],
    paint: ['PrePaint', 'Paint', 'Layerize'],
};

async function move_the_batch(page, count) {
    await page.evaluate(async (times) => {
        const frame = () => new Promise(requestAnimationFrame);
        const field = document.querySelector('#batch');
        for (let i = 0; i < times; ++i) {
            await frame();
            field.value = String(9 + (i % 23));
            field.dispatchEvent(new Event('input', { bubbles: true }));
            await frame();
        }
    }, count);
}

/// Milliseconds for each change, by kind and in all.
export async function effort_of_a_change(browser, page) {
    await move_the_batch(page, 15); // compiled and warm, as after the first touch of a slider
    await browser.startTracing(page, { categories: ['devtools.timeline'] });
    await move_the_batch(page, changes);
    const { traceEvents } = JSON.parse((await browser.stopTracing()).toString());
    const own = new Set(
        traceEvents.filter((event) => event.name === 'thread_name' && event.args.name === 'CrRendererMain').map((event) => `${event.pid}/${event.tid}`),
    );
    const effort = { all: 0 };
    for (const [kind, names] of Object.entries(kinds)) {
        effort[kind] = 0;
        for (const event of traceEvents) {
            if (event.ph !== 'X' || !names.includes(event.name) || !own.has(`${event.pid}/${event.tid}`)) continue;
            effort[kind] += (event.tdur ?? event.dur) / 1000 / changes;
        }
        effort.all += effort[kind];
    }
    return effort;
}
