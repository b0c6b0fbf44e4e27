import { useEffect, useRef, useState } from 'preact/hooks';
import { access, enter, enterWith, notice } from '../state/session.ts';
import { onSubmit, onText } from './parts/controls.tsx';

/** Signs this browser in with a token. */
export function TokenGate() {
  return <main class="gate">{access.value === 'token-needed' ? <TokenForm /> : <Unreachable />}</main>;
}

function TokenForm() {
  const [token, setToken] = useState('');
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  return (
    <form onSubmit={onSubmit(() => token.trim() !== '' && enterWith(`Bearer ${token.trim()}`))}>
      <h1>Parley</h1>
      <input hidden type="text" autocomplete="username" value={location.host} readOnly />
      <label for="token">This daemon requires a token</label>
      <input
        id="token"
        ref={field}
        type="password"
        name="token"
        autocomplete="current-password"
        value={token}
        onInput={onText(setToken)}
      />
      {/* The hint on a token is for programs, that on an address for persons. */}
      {notice.value && (
        <p class="fault" role="alert">
          {notice.value.text}
          {notice.value.hint && token === '' && `: ${notice.value.hint}`}
        </p>
      )}
      <button type="submit" class="primary">
        Enter
      </button>
      <p class="muted">
        <code>parley token</code> prints it, and <code>parley token --url</code> an address that signs a
        browser in once. With tokens of your own, <code>parley token NAME --url</code> makes one for a person.
      </p>
      <p class="muted">This browser stays signed in for 30 days, in all tabs. It does not keep the token.</p>
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
