import { effect, signal } from '@preact/signals';
import { onStored, store } from '../api/session.ts';

/** Light, dark, or as the system is. Kept in this browser. */
export const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];

const THEME = 'parley.theme';
const kept = (): Theme => THEMES.find((one) => one === localStorage.getItem(THEME)) ?? 'system';
export const theme = signal<Theme>(kept());

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});
onStored(THEME, () => {
  theme.value = kept();
});

export function chooseTheme(next: Theme): void {
  theme.value = next;
  store(localStorage, THEME, next);
}
