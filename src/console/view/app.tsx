import { signal, useSignalEffect } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { whileVisible } from '../api/browser.ts';
import { actionOf } from '../state/commands.ts';
import { announcement, close, open } from '../state/conversation.ts';
import { keepListed } from '../state/conversations.ts';
import { keepAlerting } from '../state/inbox.ts';
import { ignoreStrayClicks, listenToKeys } from '../state/keys.ts';
import { keepMarks } from '../state/list.ts';
import { outbox } from '../state/outbox.ts';
import { isPaletteOpen, keepSearching, openCommands, openPalette } from '../state/palette.ts';
import { route } from '../state/route.ts';
import { access, enter, enterWith, isAway, notice, report, saidAt } from '../state/session.ts';
import { keepSystem } from '../state/system.ts';
import { useDrop } from './conversation/composer.tsx';
import { RowMenu } from './conversation/conversation-menu.tsx';
import { ConversationPage } from './conversation/conversation-page.tsx';
import { InboxPage } from './inbox-page.tsx';
import { Sidebar } from './list/sidebar.tsx';
import { Palette } from './palette.tsx';
import { Button, closing, focus, onSubmit, onText } from './parts/controls.tsx';
import { useTimeout } from './parts/hooks.ts';
import { IconButton } from './parts/parts.tsx';
import { Quoted } from './parts/text.tsx';
import { UnknownPage } from './parts/unknown.tsx';
import { StartPage } from './start-page.tsx';
import { SystemPage } from './system/system-page.tsx';
import { Viewer } from './thread/files.tsx';
import { TurnsPage } from './turns-page.tsx';

export function App() {
  if (access.value === 'asking') return <main class="gate" aria-busy="true" />;
  if (access.value !== 'granted')
    return <main class="gate">{access.value === 'token-needed' ? <TokenForm /> : <Unreachable />}</main>;
  return <Console />;
}

function Console() {
  useEffect(keepListed, []);
  useEffect(keepMarks, []);
  useEffect(keepAlerting, []);
  useEffect(keepSystem, []);
  useEffect(keepSearching, []);
  useLayoutEffect(() => listenToKeys({ search: openPalette, help: openCommands, actionOf }), []); // what is shown can be used
  useEffect(ignoreStrayClicks, []);
  const refuse = () => report(new Error('Files go into a message: drop them where you may write one'));
  useDrop(() => document.querySelector('form.composer') ?? refuse());
  useSignalEffect(() => {
    const at = route.value;
    if (at.page === 'conversation') open(at.id);
    else close();
  });
  const { page } = route.value;
  return (
    <>
      <Notices />
      <div class={`console at-${page} ${isAway.value ? 'is-away' : ''}`}>
        <Sidebar />
        {page === 'conversation' && <ConversationPage />}
        {(page === 'new' || page === 'list') && <StartPage key={page} />}
        {page === 'inbox' && <InboxPage />}
        {page === 'system' && <SystemPage />}
        {page === 'turns' && <TurnsPage />}
        {page === 'unknown' && <UnknownPage />}
        {isPaletteOpen.value && <Palette />}
        <RowMenu />
        <Viewer />
        <div class="unseen" aria-live="polite">
          {announcement}
        </div>
      </div>
    </>
  );
}

const NOTICE_MS = 10_000;
const width = signal(innerWidth);
addEventListener('resize', () => (width.value = innerWidth));

/**
 * That the daemon is away, and what an action did or why it was refused: until the next success, another page than that to which
 * the action led if it cannot be undone, and after a while unless it has the focus, or the palette, which offers to undo it, is open.
 */
function Notices() {
  const at = route.value;
  const here = at.page === 'conversation' ? at.id : at.page;
  const hide = () => (notice.value = null);
  useEffect(() => () => saidAt !== location.hash && !notice.value?.undo && hide(), [here]);
  const isRepeatable = () => isAway.value && notice.value?.isUnreachable === true;
  const hideLate = () => isRepeatable() || document.querySelector('.notice :focus, .palette[open]') || hide();
  useTimeout(hideLate, NOTICE_MS, [notice.value]);
  const bar = useRef<HTMLDivElement>(null);
  const waiting = outbox.value.filter(({ state }) => state === 'waiting').length;
  useLayoutEffect(() => makeRoom(bar.current), [notice.value, isAway.value, waiting, at, width.value]);
  const { text, hint, undo, href } = notice.value ?? {};
  return (
    <div class="notices text-small breaks" ref={bar}>
      <div role="status">
        {isAway.value && (
          <p class="away">
            Not connected. Trying again…
            {isRepeatable() && ' Your last action was not confirmed: see later whether to repeat it.'}
            {waiting === 1 && ' Your message is sent when the daemon answers.'}
            {waiting > 1 && ` Your ${waiting} messages are sent when the daemon answers.`}
          </p>
        )}
      </div>
      {text !== undefined && !isRepeatable() && (
        <div class={`notice ${undo === undefined ? '' : 'done'}`} role="alert">
          <p>
            {href ? <a href={href}>{text}</a> : text}
            {hint && <span class="muted">{hint}</span>}
          </p>
          {undo && <Button onClick={closing(hide)(undo)}>Undo</Button>}
          <IconButton icon="close" aria-label="Dismiss" onClick={hide} />
        </div>
      )}
    </div>
  );
}

/** What gives room to notices: the list, and on a phone what scrolls in the page. */
const ROOMS = '.rows, .thread-frame, .timeline, .inbox-body, .system-body, .turn-table, .start-body';

/** Beside what scrolls, so that they cover nothing, and on the side where nothing moves under the pointer. */
function makeRoom(notices: HTMLElement | null): (() => void) | undefined {
  const rooms = [...document.querySelectorAll<HTMLElement>(ROOMS)];
  const room = rooms.find((one) => one.checkVisibility());
  if (!notices?.offsetHeight || !room || getComputedStyle(notices).position !== 'fixed') return;
  const scrolled = room.querySelector('.thread') ?? room;
  const isAbove = !room.matches('.rows') && scrolled.scrollHeight > scrolled.clientHeight;
  room.style.setProperty('anchor-name', '--room');
  room.style.minHeight = '0'; // else what is below moves in a low window
  notices.classList.toggle('above', isAbove);
  const height = notices.offsetHeight;
  room.style[isAbove ? 'marginTop' : 'marginBottom'] = `${height}px`;
  if (isAbove) scrolled.scrollTop += height;
  return () => {
    const { scrollTop } = scrolled; // which the end of what scrolls may change
    room.style.cssText = '';
    if (isAbove) scrolled.scrollTop = scrollTop - height;
  };
}

function TokenForm() {
  const [token, setToken] = useState('');
  return (
    <form
      class="stacked-3"
      onSubmit={onSubmit(() => token.trim() !== '' && enterWith(`Bearer ${token.trim()}`))}
    >
      <h1>Parley</h1>
      <input hidden type="text" autocomplete="username" value={location.host} readOnly />
      <label for="token">This daemon requires a token</label>
      <input
        id="token"
        ref={focus}
        type="password"
        name="token"
        autocomplete="current-password"
        value={token}
        onInput={onText(setToken)}
      />
      {/* The hint on a token is for programs, that on an address for persons. */}
      {notice.value && (
        <p class="fault" role="alert">
          {notice.value.text.replace(/^./, (one) => one.toUpperCase())}
          {notice.value.hint && token === '' && <Quoted text={`. ${notice.value.hint}.`} />}
        </p>
      )}
      <button type="submit" class="primary">
        Enter
      </button>
      <p class="muted text-small">
        <code>parley token</code> prints it, and <code>parley token --url</code> an address that signs a
        browser in once. With tokens of your own, <code>parley token NAME --url</code> makes one for a person.
      </p>
      <p class="muted text-small">
        This browser stays signed in for 30 days, in all tabs. It does not keep the token.
      </p>
    </form>
  );
}

const RETRY_MS = 2_000;

function Unreachable() {
  useEffect(() => whileVisible(enter, RETRY_MS), []);
  return (
    <div class="stacked-3" role="status">
      <h1>Parley</h1>
      <p>Not connected. Trying again…</p>
      <p class="muted text-small">Check that the daemon is running.</p>
    </div>
  );
}
