// Colours that also people who see fewer of them can tell apart (after Okabe and Ito), the same in light and dark.

const groups: { [group: string]: string } = {
    attention: '#0079bf', ffn: '#d55e00', moe: '#c0639a', embedding: '#8a8f98', head: '#009e73', norm: '#dd9a00',
    communication: '#4aa8de', other: '#7a7f87',
};

export const group_colour = (group: string) => groups[group] ?? '#7a7f87';
export const group_names = Object.keys(groups);

/// The live scenario, and up to three that stay beside it.
export const scenario_colours = ['var(--ink)', '#7b4fc9', '#0b8f6a', '#c2487e'];
