// Numbers for people, digit for digit as the command line prints them (src/roofline/render/numbers.cpp): four
// significant digits, a unit with the right letters.

/// Like printf's %.*f: exact ties go to the even digit, where toFixed takes the larger.
export function fixed(value: number, digits: number): string {
    const text = value.toFixed(digits);
    const exact = Math.abs(value).toFixed(Math.min(100, digits + 60));
    const point = exact.indexOf('.');
    const rest = exact.slice(point + 1 + digits);
    if (!/^50*$/.test(rest)) return text;
    const down = digits === 0 ? exact.slice(0, point) : exact.slice(0, point + 1 + digits);
    const odd = Number(down.charAt(down.length - 1)) % 2 === 1;
    const kept = odd ? Math.abs(value).toFixed(digits) : down;
    const chosen = odd && kept === down ? (Number(down) + 10 ** -digits).toFixed(digits) : kept;
    return value < 0 ? `-${chosen}` : chosen;
}

function four_digits(value: number): string {
    if (value >= 999.95) return fixed(value, 0);
    if (value >= 99.995) return fixed(value, 1);
    if (value >= 9.9995) return fixed(value, 2);
    return fixed(value, 3);
}

const prefixes = ['p', 'n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];

export function with_unit(value: number | null | undefined, unit: string): string {
    if (value === null || value === undefined) return 'unknown';
    if (value === 0) return `0 ${unit}`;
    if (!Number.isFinite(value)) return `${value > 0 ? 'inf' : '-inf'} ${unit}`;
    let prefix = 4;
    let scaled = Math.abs(value);
    while (scaled >= 999.95 && prefix + 1 < prefixes.length) {
        scaled /= 1000;
        ++prefix;
    }
    while (scaled < 0.99995 && prefix > 0) {
        scaled *= 1000;
        --prefix;
    }
    return `${value < 0 ? '-' : ''}${four_digits(scaled)} ${prefixes[prefix]}${unit}`;
}

export const time = (seconds: number | null | undefined) => with_unit(seconds, 's');

export function bytes(value: number | null | undefined): string {
    return value && value >= 1 && value < 1000 ? `${fixed(value, 0)} B` : with_unit(value, 'B');
}

export function flops(value: number | null | undefined): string {
    return value && value >= 1 && value < 1000 ? `${fixed(value, 0)} FLOP` : with_unit(value, 'FLOP');
}

/// `type`: a number type, or a name that ends in one ("matrix int8"). Operations on integers are no FLOPs.
export const flop_rate = (value: number | null | undefined, type = '') =>
    with_unit(value, /int[48]$/.test(type) ? 'OP/s' : 'FLOP/s');
export const byte_rate = (value: number | null | undefined) => with_unit(value, 'B/s');

export function grouped(value: number): string {
    const digits = fixed(Math.abs(value), 0).replace(/\B(?=(\d{3})+$)/g, ',');
    return value < 0 ? `-${digits}` : digits;
}

export function plain(value: number | null | undefined): string {
    if (value === null || value === undefined) return 'unknown';
    if (!Number.isFinite(value)) return 'inf';
    if (Math.abs(value) >= 9999.5) return grouped(Math.sign(value) * Math.round(Math.abs(value)));
    if (value === 0) return '0';
    const size = Math.abs(value);
    return (value < 0 ? '-' : '') + (size < 0.99995 ? fixed(size, 4) : four_digits(size));
}

export function intensity(value: number | null | undefined): string {
    if (value === null || value === undefined || !Number.isFinite(value)) return 'inf';
    if (value === 0) return '0';
    if (value < 0.001) return '<0.001';
    return plain(value);
}

export const percent = (fraction: number | null | undefined) =>
    fraction === null || fraction === undefined ? 'unknown' : `${fixed(100 * fraction, 1)}%`;

/// A factor: "2.1x".
export const times = (factor: number) => `${factor >= 99.95 ? fixed(factor, 0) : fixed(factor, factor < 9.995 ? 2 : 1)}x`;

/// A range in one unit where both ends have it: "6.208-7.180 ms".
export function range(low: number | undefined, high: number | undefined, unit = 's'): string {
    if (low === undefined || high === undefined) return '';
    const [first, first_unit] = with_unit(low, unit).split(' ');
    const last = with_unit(high, unit);
    return last.endsWith(` ${first_unit}`) ? `${first}-${last}` : `${first} ${first_unit}-${last}`;
}
