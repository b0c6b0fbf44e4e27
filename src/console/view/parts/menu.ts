/** Closes a menu on Esc and when another element gets the focus. */
export function closeOnLeaving(menu: HTMLDetailsElement | null): () => void {
  const leave = (event: Event) => {
    if (menu && !menu.contains(event.target as Node)) menu.open = false;
  };
  const onEscape = (event: KeyboardEvent) => {
    if (event.key !== 'Escape' || !menu?.open) return;
    menu.open = false;
    menu.querySelector('summary')?.focus();
    event.stopPropagation();
  };
  menu?.addEventListener('keydown', onEscape);
  document.addEventListener('pointerdown', leave);
  document.addEventListener('focusin', leave);
  return () => {
    menu?.removeEventListener('keydown', onEscape);
    document.removeEventListener('pointerdown', leave);
    document.removeEventListener('focusin', leave);
  };
}
