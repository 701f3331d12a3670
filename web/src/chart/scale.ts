// Logarithmic scales and their ticks.

export interface Domain {
    low: number;
    high: number;
}

export class LogScale {
    private low: number;
    private per_decade: number;

    constructor(
        readonly domain: Domain,
        readonly from: number,
        readonly to: number,
    ) {
        this.low = Math.log10(domain.low);
        this.per_decade = (to - from) / (Math.log10(domain.high) - this.low);
    }

    at(value: number): number {
        return this.from + (Math.log10(value) - this.low) * this.per_decade;
    }

    value(at: number): number {
        return 10 ** (this.low + (at - this.from) / this.per_decade);
    }

    /// Pixels of a factor of ten; negative where the scale points up.
    get decade(): number {
        return this.per_decade;
    }
}

export interface Tick {
    value: number;
    label: string; // empty: a minor one
}

const letters: { [power: string]: string } = {
    '-12': 'p', '-9': 'n', '-6': 'µ', '-3': 'm', '0': '', '3': 'k', '6': 'M', '9': 'G', '12': 'T', '15': 'P', '18': 'E',
};

/// 2500 -> "2.5k": engineering notation, as short as it is exact for ticks of one digit.
export function engineering(value: number): string {
    if (value === 0) return '0';
    let power = Math.floor(Math.log10(value * 1.0000001) / 3) * 3;
    power = Math.max(-12, Math.min(18, power));
    const scaled = value / 10 ** power;
    return `${Number(scaled.toPrecision(4))}${letters[String(power)] ?? ''}`;
}

/// Decades labelled, 2 to 9 between them as minor ticks; where many decades are shown, only some labels; where less than
/// two are, also 2 and 5.
export function log_ticks(domain: Domain, most_labels: number): Tick[] {
    const first = Math.floor(Math.log10(domain.low));
    const last = Math.ceil(Math.log10(domain.high));
    const decades = Math.log10(domain.high / domain.low);
    const every = Math.max(1, Math.ceil(decades / Math.max(1, most_labels)));
    const ticks: Tick[] = [];
    for (let power = first; power <= last; ++power) {
        for (let digit = 1; digit <= 9; ++digit) {
            const value = digit * 10 ** power;
            if (value < domain.low * 0.999999 || value > domain.high * 1.000001) continue;
            const major = digit === 1 ? power % every === 0 : decades < 2 && (digit === 2 || digit === 5);
            if (digit !== 1 && decades > 8) continue;
            ticks.push({ value, label: major ? engineering(value) : '' });
        }
    }
    return ticks;
}

/// Zooms around a value: a factor below 1 comes nearer.
export function zoom(domain: Domain, around: number, factor: number): Domain {
    const low = around * (domain.low / around) ** factor;
    const high = around * (domain.high / around) ** factor;
    const decades = Math.log10(high / low);
    if (decades < 0.2 || decades > 30) return domain;
    return { low, high };
}

export function shift(domain: Domain, factor: number): Domain {
    return { low: domain.low * factor, high: domain.high * factor };
}

/// Sliders: whole numbers from `low` to `high`, every position a round one. 24 positions an octave would be too many;
/// powers of two and the halves and quarters between them are what people ask for.
export function slider_values(low: number, high: number): number[] {
    const values = new Set<number>();
    for (let octave = 1; octave <= high; octave *= 2) {
        for (const step of octave >= 4 ? [1, 1.25, 1.5, 1.75] : [1, 1.5]) {
            const value = octave * step;
            if (Number.isInteger(value) && value >= low && value <= high) values.add(value);
        }
    }
    values.add(low).add(high);
    return [...values].sort((a, b) => a - b);
}

export function nearest_index(values: number[], value: number): number {
    let best = 0;
    values.forEach((candidate, index) => {
        const distance = Math.abs(Math.log(candidate / Math.max(value, 1e-9)));
        if (distance < Math.abs(Math.log((values[best] ?? 1) / Math.max(value, 1e-9)))) best = index;
    });
    return best;
}
