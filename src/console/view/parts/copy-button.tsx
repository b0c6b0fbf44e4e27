import { useState } from 'preact/hooks';

/** Copies a text; says so for two seconds. */
export function CopyButton({
  text,
  label,
  word = label,
}: {
  readonly text: () => string;
  readonly label: string;
  readonly word?: string;
}) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await toClipboard(text());
    setDone(true);
    setTimeout(() => setDone(false), 2_000);
  };
  return (
    <button type="button" class="link" aria-label={label} title={label} onClick={() => void copy()}>
      {isDone ? 'copied' : word}
    </button>
  );
}

/** Over plain HTTP from another machine, browsers offer no clipboard: then the selection is copied. */
export async function toClipboard(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}
