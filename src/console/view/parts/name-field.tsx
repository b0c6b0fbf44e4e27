import { nameFault, sign, signature } from '../../state/session.ts';

interface NameFieldProps {
  /** The id that a label names; else `label` names the field. */
  readonly id?: string;
  readonly label?: string;
  readonly placeholder: string;
  readonly onEnter?: () => void;
}

/** The person's name on messages. A name that the daemon would refuse is marked at once; `NameFault` says why. */
export function NameField({ id, label, placeholder, onEnter }: NameFieldProps) {
  return (
    <input
      id={id}
      class="signature"
      aria-label={label}
      aria-invalid={nameFault.value !== null}
      aria-describedby={nameFault.value === null ? undefined : 'name-fault'}
      placeholder={placeholder}
      maxLength={60}
      value={signature.value}
      onInput={(event) => sign(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== 'Enter' || event.isComposing || !onEnter) return;
        event.preventDefault(); // it would post the message
        onEnter();
      }}
    />
  );
}

export function NameFault() {
  return (
    <span class="fault" id="name-fault" role="status">
      {nameFault}
    </span>
  );
}
