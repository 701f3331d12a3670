// Taking what is seen elsewhere: pictures, tables, reports.
import type { Report } from './core/report';

function save(name: string, type: string, content: BlobPart): void {
    const url = URL.createObjectURL(new Blob([content], { type }));
    const link = document.createElement('a');
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

const colours = ['ground', 'panel', 'ink', 'muted', 'line', 'edge', 'accent', 'memory', 'memory-ink', 'compute', 'compute-ink'];

/// The picture as a file of its own: the page's colours are written into it, what only a pointer needs is left out.
export function svg_text(svg: SVGSVGElement, canvas?: HTMLCanvasElement): string {
    const copy = svg.cloneNode(true) as SVGSVGElement;
    copy.querySelectorAll('.handle').forEach((handle) => handle.remove());
    const style = getComputedStyle(document.documentElement);
    copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
    copy.removeAttribute('tabindex');
    copy.setAttribute('role', 'img');
    for (const name of colours) copy.style.setProperty(`--${name}`, style.getPropertyValue(`--${name}`).trim());
    const ground = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
    ground.setAttribute('width', '100%');
    ground.setAttribute('height', '100%');
    ground.setAttribute('fill', style.getPropertyValue('--panel').trim());
    copy.prepend(ground);
    if (canvas) {
        const image = document.createElementNS('http://www.w3.org/2000/svg', 'image');
        image.setAttribute('href', canvas.toDataURL());
        image.setAttribute('width', svg.getAttribute('width') ?? '');
        image.setAttribute('height', svg.getAttribute('height') ?? '');
        ground.after(image);
    }
    return new XMLSerializer().serializeToString(copy);
}

export function save_svg(svg: SVGSVGElement, canvas?: HTMLCanvasElement): void {
    save('roofline.svg', 'image/svg+xml', svg_text(svg, canvas));
}

export async function save_png(svg: SVGSVGElement, canvas?: HTMLCanvasElement): Promise<void> {
    const image = new Image();
    const url = URL.createObjectURL(new Blob([svg_text(svg, canvas)], { type: 'image/svg+xml' }));
    await new Promise((done, failed) => {
        image.onload = done;
        image.onerror = failed;
        image.src = url;
    });
    const sheet = document.createElement('canvas');
    sheet.width = svg.clientWidth * 2;
    sheet.height = svg.clientHeight * 2;
    sheet.getContext('2d')?.drawImage(image, 0, 0, sheet.width, sheet.height);
    URL.revokeObjectURL(url);
    sheet.toBlob((blob) => blob && save('roofline.png', 'image/png', blob));
}

const cell = (value: unknown) => {
    const text = value === undefined || value === null ? '' : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

export function csv_text(report: Report): string {
    const lines = ['stage,operator,kind,group,count,engine,dtype,flops,memory_bytes,intensity,bound,limit_s,attainable_s,expected_s,share'];
    for (const stage of report.stages) {
        for (const one of stage.records) {
            lines.push([
                stage.stage, one.name, one.kind, one.group, one.count, one.engine, one.dtype, one.flops, one.bytes.memory, one.intensity,
                one.bound, one.time_s.limit, one.time_s.attainable, one.time_s.expected, one.share,
            ].map(cell).join(','));
        }
    }
    return `${lines.join('\n')}\n`;
}

export const save_csv = (report: Report) => save('roofline.csv', 'text/csv', csv_text(report));
export const save_json = (text: string) => save('roofline.json', 'application/json', text);
