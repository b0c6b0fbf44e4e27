/**
 * A click reaches only the button that the person saw there. What comes to the place of a pressed or pointed button (the next card of
 * a list, the confirmation of an action, a new label, a link below a menu) takes no click there for a moment; a held Enter presses a
 * button once. What comes to the place of a link takes clicks: lists are scrolled.
 */

const MOMENT_MS = 500;
/** Interval of the check of the button under a resting pointer. Not every browser reports that a button was replaced. */
const LOOK_MS = 100;

interface Pointed {
  readonly button: HTMLElement;
  readonly label: string;
  readonly box: DOMRect;
}

/** Runs until the returned function is called. */
export function ignoreStrayClicks(): () => void {
  const ended = new AbortController();
  let pointed: Pointed | null = null;
  let replaced: (Pointed & { readonly until: number }) | null = null;
  let at = { x: 0, y: 0 };
  const look = (isResting = true) => {
    const button = document.elementFromPoint(at.x, at.y)?.closest<HTMLElement>('button, a') ?? null;
    const now = button && { button, label: labelOf(button), box: button.getBoundingClientRect() };
    const until = Date.now() + MOMENT_MS;
    const wasButton = pointed?.button instanceof HTMLButtonElement;
    if (pointed && wasButton && holds(pointed.box, at) && !isSame(pointed, now))
      replaced = { ...pointed, until };
    else if (replaced && isResting && !pointed && now) replaced = { ...replaced, until }; // its card was loaded first
    if (replaced && !holds(replaced.box, at)) replaced = null; // the pointer left
    pointed = now;
  };
  const follow = ({ clientX, clientY }: MouseEvent) => {
    const isResting = at.x === clientX && at.y === clientY;
    at = { x: clientX, y: clientY };
    look(isResting);
  };
  /** The second click of a double click is stray also after the moment. */
  const isStray = ({ detail }: MouseEvent) =>
    pointed !== null &&
    replaced !== null &&
    !isSame(replaced, pointed) &&
    (detail > 1 || Date.now() < replaced.until);
  const timer = setInterval(() => (pointed ?? replaced) && look(), LOOK_MS);
  const options = { capture: true, signal: ended.signal };
  addEventListener('pointerover', follow, options);
  addEventListener(
    'click',
    (event) => {
      if (event.detail === 0 || !event.isTrusted) return; // of a key
      follow(event);
      if (isStray(event)) {
        event.preventDefault();
        event.stopPropagation();
      } else if (event.detail === 1 && pointed) replaced = null;
    },
    options,
  );
  addEventListener(
    'keydown',
    (event) => {
      if (event.key === 'Enter' && event.repeat && event.target instanceof HTMLButtonElement)
        event.preventDefault();
    },
    options,
  );
  return () => {
    clearInterval(timer);
    ended.abort();
  };
}

function labelOf(button: HTMLElement): string {
  return button.ariaLabel ?? button.textContent ?? '';
}

function isSame(one: Pointed, other: Pointed | null): boolean {
  return one.button === other?.button && one.label === other.label;
}

function holds({ left, right, top, bottom }: DOMRect, { x, y }: { readonly x: number; readonly y: number }) {
  return x >= left && x <= right && y >= top && y <= bottom;
}
