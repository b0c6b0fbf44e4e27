import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { RequestError } from '../../api/requests.ts';

interface PanelFormProps {
  readonly class: string;
  /** The words on the button. */
  readonly action: string;
  readonly isDisabled: boolean;
  /** A rejection is shown above the button. */
  readonly onSubmit: () => Promise<void>;
  readonly children: ComponentChildren;
}

/** A form whose button is disabled while the request runs, and that shows a refusal with its hint. */
export function PanelForm({ class: style, action, isDisabled, onSubmit, children }: PanelFormProps) {
  const [isBusy, setBusy] = useState(false);
  const [refused, setRefused] = useState<Error | null>(null);
  const submit = async () => {
    setBusy(true);
    setRefused(null);
    try {
      await onSubmit();
    } catch (error) {
      setRefused(error instanceof Error ? error : new Error(String(error)));
      setBusy(false);
    }
  };
  return (
    <form
      class={style}
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      {children}
      {refused && (
        <p class="fault" role="alert">
          {refused.message}
          {refused instanceof RequestError && refused.hint && <span class="muted">{refused.hint}</span>}
        </p>
      )}
      <p>
        <button type="submit" class="primary" disabled={isBusy || isDisabled}>
          {action}
        </button>
      </p>
    </form>
  );
}
