import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { DeliveryMode } from '../../../conversation/index.ts';
import { showBytes } from '../../../conversation/log/parts.ts';
import { plainLine } from '../../../conversation/text/text.ts';
import { escapeHidden, inOneLine } from '../../../kernel/hidden.ts';
import { keepDraft, readDraft } from '../../api/browser.ts';
import { requests } from '../../api/requests.ts';
import { candidates, completed, mentionAt } from '../../model/addressing.ts';
import type { Workflow } from '../../model/answers.ts';
import {
  isAtWork,
  isDeleted,
  isWhollyStopped,
  nameOf,
  ownMessages,
  recipientsHere,
  stillStopped,
  team,
  useShown,
  useThread,
} from '../../state/conversation.ts';
import type { ChosenFile } from '../../state/files.ts';
import { choose, draftOf, filesFor, previewOf, progress, remove } from '../../state/files.ts';
import { focusOn } from '../../state/keys.ts';
import { route } from '../../state/route.ts';
import {
  attempt,
  identity,
  isOperator,
  mayApprove,
  mayPost,
  me,
  publisher,
  refused,
  sender,
} from '../../state/session.ts';
import { Button, LinkButton, NameFault, NameField, onSubmit, reveal, Select } from '../parts/controls.tsx';
import { Avatar, Icon, IconButton } from '../parts/parts.tsx';
import { VisibleText } from '../parts/text.tsx';

const DELIVERIES = [
  ['steer', 'Steer: read during the turn'],
  ['queue', 'Queue: answered after the turn'],
  ['interrupt', 'Interrupt: ends the turn'],
] as const;

interface ComposerProps {
  /** False: the post was refused, and the text stays in the field. */
  readonly onPost: (content: string, delivery: DeliveryMode) => Promise<boolean>;
  /** The conversation that it writes to; empty for a new one. */
  readonly place: string;
  readonly workflow?: Workflow | null;
  readonly children?: ComponentChildren;
}

export function Composer({ onPost, place, workflow = null, children }: ComposerProps) {
  const [delivery, setDelivery] = useState<DeliveryMode>('steer');
  const writing = useWriting(place, async (content) => {
    const isPosted = await onPost(content, delivery);
    if (isPosted) setDelivery('steer'); // a choice is for one message
    return isPosted;
  });
  const draft = draftOf(place);
  const thread = useThread()?.thread;
  const isOver = useDrop((file) => mayPost.value && choose(draft, file));
  if (!mayPost.value) {
    const may = mayApprove.value ? 'read and approve' : 'read';
    return <p class="composer muted text-small as-thread">{refused(`${may} but not post`, 'post')}</p>;
  }
  return (
    <form
      class={`composer text-small as-thread ${isOver ? 'drop-here' : ''}`}
      onSubmit={onSubmit(writing.post)}
    >
      <Suggestions writing={writing} />
      {place !== '' && <StopNotice />}
      {workflow ? (
        <ToWorkflow {...workflow} />
      ) : (
        <To
          content={writing.text}
          place={place}
          typing={writing.suggested.length > 0 ? writing.mention?.typed : undefined}
        />
      )}
      <div class="field frame">
        <ChosenFiles of={draft} />
        <textarea
          id="composer"
          ref={writing.field}
          rows={Math.min(writing.text.split('\n', 8).length, 8)}
          placeholder="Message or @agent"
          aria-label="Message"
          aria-describedby="recipients"
          aria-haspopup="listbox"
          aria-controls="suggestions"
          aria-autocomplete="list"
          aria-activedescendant={writing.suggested.length > 0 ? `suggestion-${writing.chosen}` : undefined}
          value={writing.text}
          onInput={writing.onInput}
          onKeyDown={writing.onKeyDown}
          onSelect={writing.onSelect}
          onPaste={(event) => {
            const { files = [], types = [] } = event.clipboardData ?? {};
            if (files.length === 0 || types.includes('text/rtf')) return; // office programs add a picture of the text
            event.preventDefault();
            for (const file of files) choose(draft, file);
          }}
        />
        <FilePicker label="Add files" multiple onChoose={(file) => choose(draft, file)}>
          <Icon name="clip" />
        </FilePicker>
        {place !== '' && <StopButton inField />}
        <button type="submit" class="primary send" disabled={writing.isEmpty} aria-label="Send" title="Send">
          <Icon name="send" />
        </button>
      </div>
      <div class="options wraps text-tiny">
        {children}
        {place !== '' && <Signature />}
        {place !== '' && (
          <label class={`inline ${thread && isAtWork(thread) ? '' : 'at-rest'}`}>
            <span class="muted">While they work</span>
            <Select label="While they work" value={delivery} options={DELIVERIES} onChoose={setDelivery} />
          </label>
        )}
        <span class="muted keys at-end">
          <kbd>Shift Enter</kbd> starts a line
        </span>
      </div>
    </form>
  );
}

/** Files are dropped anywhere: the browser would leave the page for them. True: they are above it. */
export function useDrop(onDrop: (file: File) => unknown): boolean {
  const [isOver, setOver] = useState(false);
  useLayoutEffect(() => {
    const ended = new AbortController();
    const onDrag = (event: DragEvent) => {
      const { dataTransfer, type, relatedTarget } = event;
      if (!dataTransfer?.types.includes('Files')) return;
      event.preventDefault();
      setOver(type === 'dragover' || (type === 'dragleave' && relatedTarget !== null));
      if (type === 'drop') for (const file of dataTransfer.files) onDrop(file);
    };
    for (const type of ['dragover', 'dragleave', 'drop'] as const)
      document.addEventListener(type, onDrag, { signal: ended.signal });
    return () => ended.abort();
  }, []);
  return isOver;
}

/**
 * Stops all agents, or resumes them. While something runs it is in the message field, where it takes the place of Send without a text
 * (`composer.css`); else in the head.
 */
export function StopButton({ inField = false }: { readonly inField?: boolean }) {
  const here = useShown();
  const [isBusy, setBusy] = useState(false);
  if (!isOperator.value || !here || isAtWork(here.thread) !== inField) return null;
  const isStopped = isWhollyStopped(here.thread);
  const [verb, word, icon] = isStopped
    ? (['resume', 'Resume', 'play'] as const)
    : (['stop', 'Stop', 'stop'] as const);
  const look = isStopped || inField ? verb : 'stop quiet';
  const act = async () => {
    setBusy(true);
    await attempt(() => requests[verb](here.id, sender()));
    setBusy(false);
    if (inField) focusOn('composer');
  };
  return (
    <Button class={look} title={`${word} all agents`} disabled={isBusy} onClick={() => void act()}>
      <Icon name={icon} />
      <span class={inField ? 'unseen' : undefined}>{word}</span>
    </Button>
  );
}

function StopNotice() {
  const here = useThread();
  const stopped = here && !isDeleted(here) ? stillStopped(here.thread) : [];
  if (!here || stopped.length === 0) return null;
  const isWhole = isWhollyStopped(here.thread);
  const names = stopped.map(({ slug }) => nameOf(slug)).join(', ');
  return (
    <p class="muted stop-notice text-tiny">
      {isWhole ? 'The conversation is stopped: agents read' : `Still stopped: ${names}. They read`} this after
      you resume them. A message that names an agent with @ resumes it.{' '}
      {isOperator.value && !isWhole && (
        <LinkButton onClick={() => attempt(() => requests.resume(here.id, sender()))}>Resume all</LinkButton>
      )}
    </p>
  );
}

function Signature() {
  if (identity.value?.name) return <span class="muted">as {me}</span>; // the token says so
  return (
    <>
      <label for="name" class="inline">
        <span class="muted">as {publisher.value}/</span>
        <NameField id="name" label="Your name" placeholder="your name" onEnter={() => focusOn('composer')} />
      </label>
      <NameFault />
    </>
  );
}

type Writing = ReturnType<typeof useWriting>;

function useWriting(place: string, onPost: (content: string) => Promise<boolean>) {
  const field = useRef<HTMLTextAreaElement>(null);
  const caret = useRef<number | null>(null);
  const [text, setText] = useState(() => readDraft(place));
  const [cursor, setCursor] = useState(0);
  const [chosen, choose] = useState(0);
  const [isDismissed, dismiss] = useState(false);
  const isEmpty = text.trim() === '' && filesFor(draftOf(place)).length === 0;
  const mention = isDismissed ? null : mentionAt(text, cursor);
  const suggested = mention ? candidates(team.value, mention.typed) : [];

  useEffect(() => {
    if (route.value.page === 'new') field.current?.focus();
  }, []);
  useLayoutEffect(() => {
    if (caret.current === null) return; // before the next key: a later frame would move what is typed meanwhile
    field.current?.focus();
    field.current?.setSelectionRange(caret.current, caret.current);
    caret.current = null;
  }, [text]);
  const write = (next: string) => {
    setText(next);
    keepDraft(place, next);
  };
  const post = async () => {
    const content = text.trim();
    if (isEmpty) return;
    write('');
    setCursor(0);
    field.current?.focus();
    if (await onPost(content)) return;
    write([content, readDraft(place)].filter((part) => part !== '').join('\n\n')); // it was refused
  };
  const recall = useRecall(text, (message) => {
    write(message);
    caret.current = message.length;
  });
  const take = (slug: string) => {
    if (!mention) return;
    const after = completed(text, mention, slug);
    write(after.text);
    setCursor(after.cursor);
    caret.current = after.cursor;
  };
  /** False: the list does not use this key. */
  const handleSuggestion = (key: string): boolean => {
    const picked = suggested[chosen];
    if (!picked) return false;
    if (key === 'ArrowDown') choose((chosen + 1) % suggested.length);
    else if (key === 'ArrowUp') choose((chosen + suggested.length - 1) % suggested.length);
    else if (key === 'Enter' || key === 'Tab') take(picked.slug);
    else if (key === 'Escape') dismiss(true);
    else return false;
    return true;
  };
  const onInput = (event: { readonly currentTarget: HTMLTextAreaElement }) => {
    write(event.currentTarget.value);
    setCursor(event.currentTarget.selectionStart);
    choose(0);
    dismiss(false);
  };
  const onSelect = (event: { readonly currentTarget: HTMLTextAreaElement }) =>
    setCursor(event.currentTarget.selectionStart);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.isComposing) return;
    if (handleSuggestion(event.key)) {
      event.preventDefault();
      event.stopPropagation();
    } else if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      void post();
    } else if (recall(event.key)) event.preventDefault();
  };
  return { field, text, isEmpty, chosen, mention, suggested, post, take, onInput, onSelect, onKeyDown };
}

/** The up arrow in an empty field writes the person's last message, then the ones before; the down arrow goes back. */
function useRecall(text: string, write: (message: string) => void): (key: string) => boolean {
  const recalled = useRef({ at: -1, text: '' });
  return (key) => {
    const by = { ArrowUp: 1, ArrowDown: -1 }[key];
    const last = recalled.current.text === text && text !== '' ? recalled.current.at : -1;
    if (by === undefined || (text !== '' && last === -1) || last + by < -1) return false;
    const messages = ownMessages();
    const at = Math.min(last + by, messages.length - 1);
    if (at === last) return true;
    recalled.current = { at, text: messages[at] ?? '' };
    write(recalled.current.text);
    return true;
  };
}

function Suggestions({ writing }: { readonly writing: Writing }) {
  return (
    <div
      id="suggestions"
      class="suggestions frame"
      role="listbox"
      aria-label="Agents"
      hidden={writing.suggested.length === 0}
    >
      {writing.suggested.map((agent, place) => (
        <div
          key={agent.slug}
          id={`suggestion-${place}`}
          role="option"
          tabIndex={-1}
          aria-selected={place === writing.chosen}
          ref={place === writing.chosen ? reveal : null}
          onMouseDown={(event) => {
            event.preventDefault();
            writing.take(agent.slug);
          }}
        >
          <Avatar id={agent.slug} size="small" />
          <bdi>{agent.name}</bdi>
          <span>@{agent.slug}</span>
          <span class="muted one-line">{agent.description}</span>
        </div>
      ))}
    </div>
  );
}

interface ToProps {
  readonly content: string;
  readonly place: string;
  /** The beginning of a name that the suggestions complete. */
  readonly typing: string | undefined;
}

const LONGEST_QUESTION = 60;

function To({ content, place, typing }: ToProps) {
  const here = useThread();
  const thread = place === '' || isDeleted(here) ? null : (here?.thread ?? null);
  const to = recipientsHere(content, thread);
  const names = (slugs: readonly string[]) => slugs.map(nameOf).join(', ');
  const unknown = to.unknown.filter((word) => word !== typing);
  const busy = to.missed.length > 1 ? 'who are working, do' : 'who is working, does';
  const asked = thread?.questions.find(({ agent }) => to.slugs.includes(agent));
  return (
    <p id="recipients" class="muted breaks">
      {to.isAnswer && asked
        ? `Answers “${escapeHidden(plainLine(asked.question, LONGEST_QUESTION))}” of `
        : 'To '}
      <bdi class="names">{names(to.slugs)}</bdi>
      {to.isHeld && ', which is stopped: resume it, or name it with @'}
      {to.missed.length > 0 && `. ${names(to.missed)}, ${busy} not get it.`}
      {unknown.length > 0 && (
        <span class="unknown breaks muted as-thread">
          There is no agent {unknown.map((word) => `@${word}`).join(', ')}.
        </span>
      )}
    </p>
  );
}

function ToWorkflow({ id, start, nodes }: Workflow) {
  const agent = nodes.find(({ node }) => node === start)?.agent ?? '';
  return (
    <p id="recipients" class="muted breaks">
      Starts the workflow {id}: to <bdi class="names">{nameOf(agent)}</bdi> at {start}
    </p>
  );
}

export function ChosenFiles({ of }: { readonly of: string }) {
  const files = filesFor(of);
  return (
    <>
      {files.length > 0 && (
        <ul class="chosen-files" aria-label="Files to send">
          {files.map((file) => (
            <Chosen key={file.id} file={file} />
          ))}
        </ul>
      )}
      <p class="unseen" role="status">
        {files.map((file) => `${inOneLine(file.name)}: ${stateOf(file)}. `)}
      </p>
    </>
  );
}

function Chosen({ file }: { readonly file: ChosenFile }) {
  const { id, of, name, size, state } = file;
  const label = inOneLine(name);
  const share = progress.value?.id === id ? progress.value.share : 0;
  return (
    <li class={`abreast text-small ${state.kind}`}>
      {previewOf(id) ? <img src={previewOf(id)} alt="" /> : <Icon name="file" />}
      <span class="file-words breaks">
        <bdi class="file-name" title={label}>
          <VisibleText text={name} isLine />
        </bdi>
        <span class="muted">
          {showBytes(size)}
          {state.kind !== 'uploaded' && `, ${share > 0 ? `${Math.round(share * 100)} %` : stateOf(file)}`}
        </span>
        {state.kind === 'uploading' && <progress aria-label={`Upload of ${label}`} value={share} />}
      </span>
      {state.kind === 'lost' && (
        <FilePicker label={`Choose ${label} again`} onChoose={(content) => choose(of, content, id)}>
          Choose again
        </FilePicker>
      )}
      <IconButton
        icon="close"
        aria-label={`Remove ${label}`}
        onClick={() => {
          remove(id);
          focusOn('composer');
        }}
      />
    </li>
  );
}

function stateOf({ state }: ChosenFile): string {
  if (state.kind === 'uploading') return state.reason ?? 'is being uploaded';
  if (state.kind === 'lost') return 'lost with the reload of the page';
  return state.kind === 'refused' ? state.reason : state.kind;
}

interface FilePickerProps {
  readonly label: string;
  readonly onChoose: (file: File) => void;
  readonly multiple?: boolean;
  readonly children: ComponentChildren;
}

function FilePicker({ label, onChoose, multiple, children }: FilePickerProps) {
  return (
    <label class="button quiet" title={label}>
      {children}
      <input
        type="file"
        class="unseen"
        aria-label={label}
        multiple={multiple}
        onChange={({ currentTarget }) => {
          for (const file of currentTarget.files ?? []) onChoose(file);
          currentTarget.value = ''; // the same file can be chosen again
        }}
      />
    </label>
  );
}
