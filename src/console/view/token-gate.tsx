import { useEffect, useRef, useState } from 'preact/hooks';
import { access, enter, enterWith, notice } from '../state/session.ts';
import { onSubmit, onText } from './parts/controls.tsx';

/** Asks for the token, which is stored until the tab is closed. */
export function TokenGate() {
  return <main class="gate">{access.value === 'token-needed' ? <TokenForm /> : <Unreachable />}</main>;
}

function TokenForm() {
  const [token, setToken] = useState('');
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  return (
    <form onSubmit={onSubmit(() => token.trim() !== '' && enterWith(token.trim()))}>
      <h1>Parley</h1>
      <label for="token">This daemon requires a token</label>
      <input
        id="token"
        ref={field}
        type="password"
        autocomplete="off"
        value={token}
        onInput={onText(setToken)}
      />
      {notice.value && (
        <p class="fault" role="alert">
          {notice.value.text}: {notice.value.hint}
        </p>
      )}
      <button type="submit">Enter</button>
      <p class="muted">
        <code>parley token</code> prints it, and <code>parley token --url</code> an address that opens this
        page once.
      </p>
      <p class="muted">It is stored until you close this tab, and sent only to this daemon.</p>
    </form>
  );
}

const RETRY_MS = 2_000;

function Unreachable() {
  useEffect(() => {
    const timer = setInterval(() => void enter(), RETRY_MS);
    return () => clearInterval(timer);
  }, []);
  return (
    <div role="status">
      <h1>Parley</h1>
      <p>Not connected. Trying again…</p>
      <p class="muted">Check that the daemon is running.</p>
    </div>
  );
}
