import type { ComponentChildren, ComponentProps } from 'preact';
import { useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { hintOf, nameFault, sign, signature } from '../../state/session.ts';

/** Buttons, forms and menus of all pages. */

interface ButtonProps extends ComponentProps<'button'> {
  /** The key that presses it while its entry is selected (KEYS-3). */
  readonly shortcut?: string | undefined;
}

export const Button = ({ shortcut, ...props }: ButtonProps) => (
  <button type="button" aria-keyshortcuts={shortcut} data-key={shortcut} {...props} />
);

export const QuietButton = (props: ButtonProps) => <Button class="quiet" {...props} />;

export const LinkButton = (props: ButtonProps) => <Button class="link" {...props} />;

export const onText =
  (change: (text: string) => void) =>
  ({ currentTarget }: { readonly currentTarget: { readonly value: string } }): void =>
    change(currentTarget.value);

export const onSubmit =
  (submit: () => unknown) =>
  (event: Event): void => {
    event.preventDefault();
    submit();
  };

/** In a field of several lines: Shift and Enter start one. */
export const onEnter =
  (send: () => unknown) =>
  (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    if (!event.repeat) send();
  };

type CopyProps = { text: () => string; label: string; word?: string };

export function CopyButton({ text, label, word = label }: CopyProps) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await toClipboard(text());
    setDone(true);
    setTimeout(() => setDone(false), 2_000);
  };
  return (
    <LinkButton aria-label={label} title={label} onClick={() => void copy()}>
      {isDone ? (/^[A-Z]/.test(word) ? 'Copied' : 'copied') : word}
    </LinkButton>
  );
}

/** Over plain HTTP from another machine, browsers offer no clipboard, and some refuse it: then the selection is copied. */
export async function toClipboard(text: string): Promise<void> {
  const refusal = await navigator.clipboard?.writeText(text).then(() => null, String);
  if (refusal === null) return;
  const field = document.createElement('textarea');
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}

interface SelectProps<V extends string> {
  readonly label?: string;
  readonly value: V;
  /** A value that is its own text needs no pair. */
  readonly options: readonly (V | readonly [value: V, text: string, title?: string])[];
  readonly onChoose: (value: V) => void;
  readonly isRequired?: boolean;
}

/** Browsers of some systems choose with these at once, without a list. */
const CHOOSES = /^(Arrow.*|Home|End|Page.*|\S)$/;

/** Shows `value` until that changes. Outside of a form a choice acts: keys open the list, in which Enter or a click chooses. */
export function Select<V extends string>({ label, value, options, onChoose, isRequired }: SelectProps<V>) {
  return (
    <select
      aria-label={label}
      required={isRequired}
      value={value}
      onKeyDown={(event) => {
        const { key, ctrlKey, metaKey, altKey, currentTarget: select } = event;
        if (select.form || ctrlKey || metaKey || altKey || !CHOOSES.test(key)) return;
        if (!('showPicker' in select)) return;
        event.preventDefault();
        select.showPicker();
      }}
      onChange={({ currentTarget }) => {
        const chosen = currentTarget.value as V;
        currentTarget.value = value;
        onChoose(chosen);
      }}
    >
      {options.map((option) => {
        const [name, text, title] = typeof option === 'string' ? [option, option] : option;
        return (
          <option key={name} value={name} title={title}>
            {text}
          </option>
        );
      })}
    </select>
  );
}

interface PanelFormProps {
  readonly class?: string;
  readonly action: string;
  readonly isDisabled: boolean;
  /** A rejection is shown above the button. */
  readonly onSubmit: () => Promise<void>;
  readonly children: ComponentChildren;
}

/** A form whose button is disabled while the request runs, and that shows a refusal with its hint. */
export function PanelForm({ class: look = '', action, children, ...props }: PanelFormProps) {
  const [isBusy, setBusy] = useState(false);
  const [refusal, setRefused] = useState<Error | null>(null);
  const submit = () => {
    setBusy(true);
    setRefused(null);
    props
      .onSubmit()
      .catch(setRefused)
      .finally(() => setBusy(false));
  };
  return (
    <form class={`panel-form stacked-3 ${look}`} onSubmit={onSubmit(submit)}>
      {children}
      <Refusal of={refusal} />
      <p>
        <button type="submit" class="primary" disabled={isBusy || props.isDisabled}>
          {action}
        </button>
      </p>
    </form>
  );
}

/** Above the buttons of the form that was refused. */
export const Refusal = ({ of }: { readonly of: Error | null }) =>
  of && (
    <p class="fault" role="alert">
      {of.message}
      <span class="muted">{hintOf(of)}</span>
    </p>
  );

interface NameFieldProps {
  /** The id that a label names; else `label` names the field. */
  readonly id?: string;
  readonly label?: string;
  readonly placeholder: string;
  readonly onEnter?: () => void;
}

/** The person's name on messages. A name that the daemon would refuse is marked at once; `NameFault` says why. */
export function NameField({ id, label, placeholder, onEnter: then }: NameFieldProps) {
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
      onInput={onText(sign)}
      onKeyDown={then && onEnter(then)} // it would post the message
    />
  );
}

export function NameFault() {
  return (
    <span class="fault text-small" id="name-fault" role="status">
      {nameFault}
    </span>
  );
}

/** Closes the menu, the dialog or the notice of an action before it. */
export const closing = (close: () => void) => (action?: () => unknown) => () => {
  close();
  action?.();
};

interface MenuProps extends ButtonProps {
  readonly face: ComponentChildren;
  /** `then` closes the menu before an action. */
  readonly items: (then: (action?: () => unknown) => () => void) => ComponentChildren;
  readonly onHide?: () => void;
}

/** A button, and a list below it. The browser closes it on Esc (KEYS-5) and on a click elsewhere. */
export function Menu({ face, items, onHide, ...button }: MenuProps) {
  const id = useId();
  const menu = useRef<HTMLDivElement>(null);
  const hide = () => menu.current?.hidePopover();
  return (
    <>
      <Button {...button} popovertarget={id}>
        {face}
      </Button>
      <div
        id={id}
        class="menu-list frame text-small"
        popover="auto"
        ref={menu}
        onToggle={({ newState }) => newState === 'closed' && onHide?.()}
        onFocusOut={({ relatedTarget, currentTarget }) => {
          if (relatedTarget instanceof Node && !currentTarget.contains(relatedTarget)) hide();
        }}
      >
        {items(closing(hide))}
      </div>
    </>
  );
}

interface DialogProps {
  readonly class: string;
  readonly label: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren | ((close: () => void) => ComponentChildren);
}

/** Modal while it is rendered. It is closed by Esc, which the browser does, and by a click beside it. */
export function Dialog({ class: look, label, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const isOver = useRef(false);
  const close = () => dialog.current?.close();
  useLayoutEffect(() => {
    dialog.current?.showModal(); // only now: it focuses the field that it contains
    const at = location.hash;
    // It would cover another page. The event of a change before it opened may come later.
    const leave = () => location.hash !== at && close();
    addEventListener('hashchange', leave);
    return () => {
      removeEventListener('hashchange', leave);
      isOver.current = true; // the event of closing comes later, and would close the next dialog
      close();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={look}
      aria-label={label}
      onClose={() => !isOver.current && onClose()}
      onPointerDown={(event) => isBeside(event) && close()}
    >
      {typeof children === 'function' ? children(close) : children}
    </dialog>
  );
}

/** The backdrop of a dialog is the dialog, outside of its box. */
function isBeside({ target, currentTarget, clientX, clientY }: PointerEvent): boolean {
  if (target !== currentTarget || !(currentTarget instanceof Element)) return false;
  const { left, right, top, bottom } = currentTarget.getBoundingClientRect();
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}

type ConfirmProps = { action: string; onConfirm: () => void; onCancel: () => void };

/** A `ref` that gives an element the focus when it appears. */
export const focus = (element: HTMLElement | null) => element?.focus();

/** A `ref` that scrolls to an element when it appears, or is chosen. */
export const reveal = (element?: HTMLElement | null) => element?.scrollIntoView({ block: 'nearest' });

/** A question before what cannot be undone. The focused button was removed, so "Cancel" gets the focus. */
export function Confirm({ action, onConfirm, onCancel }: ConfirmProps) {
  return (
    <>
      <Button class="danger" onClick={onConfirm}>
        {action}
      </Button>
      <button type="button" ref={focus} onClick={onCancel}>
        Cancel
      </button>
    </>
  );
}
