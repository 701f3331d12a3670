// Labels that cover neither each other nor the points: each tries a few places around its point and stays away where
// none is free. Those of larger points choose first.

export interface Box {
    left: number;
    top: number;
    right: number;
    bottom: number;
}

export interface Anchor {
    id: string;
    x: number;
    y: number;
    radius: number;
    text: string;
    weight: number; // who chooses first
}

export interface Label {
    id: string;
    text: string;
    x: number;
    y: number; // of the base line
    align: 'start' | 'end' | 'middle';
    box: Box;
}

export function overlap(a: Box, b: Box): boolean {
    return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

const line_height = 13;
/// Wide enough for the page's font at 11 pixels; measuring would tie the layout to a browser.
export const text_width = (text: string) => text.length * 6.5 + 2;

export function place_labels(anchors: Anchor[], inside: Box, taken: Box[] = []): Label[] {
    const points = anchors.map((anchor) => ({
        left: anchor.x - anchor.radius, right: anchor.x + anchor.radius,
        top: anchor.y - anchor.radius, bottom: anchor.y + anchor.radius,
    }));
    const placed: Label[] = [];
    const order = anchors.map((_, index) => index).sort((a, b) => (anchors[b]?.weight ?? 0) - (anchors[a]?.weight ?? 0) || a - b);
    for (const index of order) {
        const anchor = anchors[index];
        if (!anchor || anchor.text === '') continue;
        const width = text_width(anchor.text);
        const gap = anchor.radius + 4;
        const middle = anchor.y + 4;
        const places: [number, number, Label['align']][] = [
            [anchor.x + gap, middle, 'start'],
            [anchor.x - gap, middle, 'end'],
            [anchor.x, anchor.y - gap - 1, 'middle'],
            [anchor.x, anchor.y + gap + 10, 'middle'],
            [anchor.x + gap, anchor.y + gap + 6, 'start'],
            [anchor.x - gap, anchor.y - gap, 'end'],
        ];
        for (const [x, y, align] of places) {
            const left = align === 'start' ? x : align === 'end' ? x - width : x - width / 2;
            const box: Box = { left, right: left + width, top: y - line_height + 3, bottom: y + 3 };
            if (box.left < inside.left || box.right > inside.right || box.top < inside.top || box.bottom > inside.bottom) continue;
            if (points.some((point, other) => other !== index && overlap(point, box))) continue;
            if (placed.some((label) => overlap(label.box, box)) || taken.some((other) => overlap(other, box))) continue;
            placed.push({ id: anchor.id, text: anchor.text, x, y, align, box });
            break;
        }
    }
    return placed;
}
