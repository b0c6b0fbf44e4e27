import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { AnswerOf } from '../../../bus/contract.ts';
import { askedText, type Field, fieldsAsked, optionsAsked } from '../../../conversation/log/server-asks.ts';
import { answeredBy } from '../../../conversation/log/words.ts';
import { differenceLines } from '../../../conversation/text/line-diff.ts';
import { canonicalArguments, escapeHidden, visibleText } from '../../../kernel/hidden.ts';
import { isRecord, parseJson, readArguments } from '../../../kernel/json.ts';
import { type ApprovalAnswer, isRetryable, requests } from '../../api/requests.ts';
import { argumentsBlock, pretty, shortLine } from '../../model/format.ts';
import type { Approval, ArgumentView, Call } from '../../model/thread/calls.ts';
import { argumentsOf, argumentViews, policyRule } from '../../model/thread/calls.ts';
import { answerApproval, fieldsOf, offeredArguments } from '../../state/approvals.ts';
import { nameOf } from '../../state/conversation.ts';
import { useConversation, useKeptText } from '../../state/kept.ts';
import { goOnAfter } from '../../state/keys.ts';
import { isOperator, mayApprove, nameOfMe, refused } from '../../state/session.ts';
import { Button, CopyButton, onSubmit, onText, QuietButton, Refusal, Select } from '../parts/controls.tsx';
import { useNow, useRequest, useTimeout } from '../parts/hooks.ts';
import { Fold } from '../parts/parts.tsx';
import { Diff, Scrolled, VisibleText } from '../parts/text.tsx';

interface ApprovalProps {
  readonly approval: Approval;
  readonly call: Call;
  readonly agent: string;
  /** Who answered it first, or an empty text. */
  readonly over?: string | null;
  /** `ran`: the arguments, if they are other ones. */
  readonly onDone?: (did: string, ran?: object) => void;
}

/** A call that waits for a person: everything that would run, why it asks, and the answers. */
export function ApprovalCard(props: ApprovalProps) {
  const { approval, call, over } = props;
  const { asks } = approval;
  const answering = useAnswers(props);
  const change = useChange(call, approval, answering);
  const [end, setEnd] = useState<Element | null>(null);
  const [start, setStart] = useState<Element | null>(null);
  const { path } = argumentsOf({ ...call, arguments: change.of }); // another file is read anew
  const [isEndSeen, isStartSeen] = [useIsSeen(end, SIGHT_MS, path), useIsSeen(start, 0)];
  const isSeen = isStartSeen === false ? false : isEndSeen;
  const readOn = () => {
    change.accept();
    (isStartSeen === false ? start : end)?.scrollIntoView({ block: 'center' });
  };
  const guard = (event: Event) => {
    const button = event.target as Element;
    const isUnread = isSeen === false && button.closest('.choices > .decide, .edit-arguments .primary');
    if (!isUnread && !(change.isOutdated && button.closest('.primary'))) return;
    event.stopPropagation();
    event.preventDefault();
    readOn();
  };
  return (
    <fieldset
      class={`ask-card column frame breaks ${isSeen ? 'seen' : ''}`}
      tabIndex={-1}
      aria-label={asks ? `${escapeHidden(asks.server)} asks` : `May ${escapeHidden(call.tool)} run?`}
      onClickCapture={guard}
    >
      <p ref={setStart}>
        {asks
          ? `${askedText({ ...asks, schema: {} }).replace('the', 'The')}.`
          : typeof over !== 'string' && (approval.mayHaveRun ? RAN : 'May this call run?')}
      </p>
      {asks?.url !== undefined && (
        <a href={asks.url} target="_blank" rel="noopener noreferrer">
          {escapeHidden(asks.url)}
        </a>
      )}
      {!asks && <WholeCall {...{ call, over, change }} onEnd={setEnd} />}
      {change.isOutdated && (
        <p class="fault" role="status">
          The file has changed since this call was shown. What is above is the difference now.
        </p>
      )}
      {(isSeen === false || change.isOutdated) && mayApprove.value && (
        <p class="read-on">
          <Button onClick={readOn}>Read on to answer</Button>
        </p>
      )}
      {approval.why && !approval.mayHaveRun && !asks && (
        <p class="muted">Why it needs approval: {escapeHidden(approval.why)}</p>
      )}
      {!mayApprove.value ? (
        <p class="muted">{refused('not answer this', 'approve')}</p>
      ) : asks && asks.url === undefined ? (
        <AskedFields {...{ answering, asks }} />
      ) : (
        change.wasRead && <Answers {...props} {...{ answering, change }} />
      )}
    </fieldset>
  );
}

const RAN = 'The daemon ended while this call was running. It may have taken effect. What was the outcome?';

const SIGHT_MS = 200;

/** Whether the beginning or the end of what would run was in sight for so long; null: not known yet, as for another `path`. */
function useIsSeen(end: Element | null, ms: number, path?: unknown): boolean | null {
  const [isSeen, see] = useState<boolean | null>(null);
  useEffect(() => {
    see(null);
    if (!end) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = ([last]: readonly IntersectionObserverEntry[]) => {
      clearTimeout(timer);
      if (last?.isIntersecting)
        timer = setTimeout(see, ms, true); // a scroll past it is no sight
      else see((was) => was ?? false);
    };
    const watcher = new IntersectionObserver(look, { threshold: 1 });
    watcher.observe(end);
    return () => {
      watcher.disconnect();
      clearTimeout(timer);
    };
  }, [end, path]);
  return isSeen;
}

type AskedProps = Pick<AnswersProps, 'answering'> & { asks: NonNullable<Approval['asks']> };

/** Enter in one of several fields leads to the next one, and from the last to the button, so that no form is sent half-filled. Ctrl+Enter sends. */
function passOn(event: KeyboardEvent): void {
  const { key, target, isComposing, ctrlKey, metaKey, shiftKey } = event;
  const isField = target instanceof HTMLInputElement || target instanceof HTMLSelectElement;
  if (key !== 'Enter' || shiftKey || isComposing || !isField) return;
  const controls = [...(target.form?.querySelectorAll<HTMLElement>('input, select, .primary') ?? [])];
  event.preventDefault();
  if (ctrlKey || metaKey || controls.length === 2) controls.at(-1)?.click();
  else if (target.reportValidity()) controls[controls.indexOf(target) + 1]?.focus();
}

function AskedFields({ asks, answering: { isBusy, refusal, edited, setEdited, say } }: AskedProps) {
  const fields = fieldsAsked(asks.schema);
  const required = [asks.schema.required].flat();
  const known = fields.flatMap(([name, field]) =>
    field.default === undefined && !(field.type === 'boolean' && required.includes(name))
      ? []
      : [[name, field.default ?? false]],
  );
  const given = edited === '' ? Object.fromEntries(known) : (parseJson(edited) as Record<string, unknown>);
  const change = (name: string) => (value: unknown) =>
    setEdited(JSON.stringify({ ...given, [name]: value === '' ? undefined : value }));
  return (
    <form
      class="edit-arguments column"
      onKeyDown={passOn}
      onSubmit={onSubmit(() => say({ answer: 'approve', arguments: given }))}
    >
      {fields.map(([name, field, about]) => {
        const Row = field.type === 'array' ? 'fieldset' : 'label';
        const title = escapeHidden(String(field.title ?? name));
        return (
          <Row key={name} aria-label={Row === 'fieldset' ? title : undefined}>
            <span>
              {title}
              {!required.includes(name) && field.type !== 'boolean' && <span class="muted"> (optional)</span>}
            </span>{' '}
            <span class="muted">{escapeHidden(about)}</span>
            <AskedField
              {...{ field, value: given[name], onChange: change(name) }}
              isRequired={required.includes(name)}
            />
          </Row>
        );
      })}
      <div class="buttons decide">
        <Refusal of={refusal} />
        <Button type="submit" class="primary" disabled={isBusy} shortcut="a">
          Send this answer
        </Button>
        <Button disabled={isBusy} shortcut="d" onClick={() => void say({ answer: 'deny' })}>
          Deny
        </Button>
      </div>
    </form>
  );
}

type AskedFieldProps = { field: Field; value: unknown; isRequired: boolean; onChange(value: unknown): void };

const boxOf = (checked: boolean, toggle: (isOn: boolean) => void) => {
  const onChange = (event: { readonly currentTarget: HTMLInputElement }) =>
    toggle(event.currentTarget.checked);
  return { type: 'checkbox' as const, checked, onChange };
};

const FORMATS: Readonly<Record<string, string>> = { email: 'email', uri: 'url', date: 'date' };

/** What is neither a choice, a number nor a text is written as JSON. */
function AskedField({ field, value = '', isRequired, onChange }: AskedFieldProps) {
  const { type, minimum, maximum, format } = field;
  const listed = type === 'array' ? field.items : field;
  const options = optionsAsked(listed).map(([one, words]) => [String(one), words] as const);
  if (type === 'boolean') return <input {...boxOf(value === true, onChange)} />;
  if (type === 'array' && options.length > 0) {
    const chosen = [value].flat().map(String);
    const others = (left: string) =>
      options.map(([one]) => one).filter((one) => one !== left && chosen.includes(one));
    return options.map(([one, words]) => (
      <label key={one}>
        <input
          {...boxOf(chosen.includes(one), (isOn) => onChange([...others(one), ...(isOn ? [one] : [])]))}
        />{' '}
        {escapeHidden(words)}
      </label>
    ));
  }
  if (options.length > 0)
    return (
      <Select
        isRequired={isRequired}
        value={String(value)}
        options={value === '' || !isRequired ? [['', 'no answer'], ...options] : options}
        onChoose={onChange}
      />
    );
  const isNumber = type === 'number' || type === 'integer';
  const isText = type === 'string' || type === undefined;
  const read = (text: string) => (isText || text === '' ? text : (parseJson(text) ?? text));
  const rules: object = {
    type: isNumber ? 'number' : (FORMATS[String(format)] ?? 'text'),
    ...(isNumber && { min: minimum, max: maximum, step: type === 'number' ? 'any' : 1 }),
    ...(isText && { minLength: field.minLength, maxLength: field.maxLength, pattern: field.pattern }),
  };
  return (
    <input
      {...rules}
      required={isRequired}
      value={isText || isNumber || typeof value === 'string' ? String(value) : JSON.stringify(value)}
      onInput={onText((text) => onChange(read(text)))}
    />
  );
}

interface AnswersProps extends ApprovalProps {
  readonly answering: ReturnType<typeof useAnswers>;
  readonly change: ReturnType<typeof useChange>;
}

function Answers(props: AnswersProps) {
  const { approval, call, agent } = props;
  return (
    <>
      {props.answering.edited === '' ? <Choices {...props} /> : <EditArguments {...props} />}
      {!approval.mayHaveRun && !approval.asks && <AlwaysAllow call={call} agent={agent} />}
    </>
  );
}

function useAnswers({ approval, call, over = null, onDone }: ApprovalProps) {
  const id = useConversation();
  const [isBusy, setBusy] = useState(false);
  const [reason, setReason] = useKeptText(fieldsOf.reason(approval));
  const [edited, setEdited] = useKeptText(fieldsOf.arguments(call, approval), offeredArguments(call));
  const [field, edit] = useFocusOnChange(edited !== '');
  const [refusal, setRefusal] = useState<Error | null>(null);
  const say = async (given: ApprovalAnswer) => {
    const goOn = goOnAfter();
    setBusy(true);
    setRefusal(null);
    const withReason = given.answer !== 'result' && reason.trim() !== '' ? { ...given, reason } : given;
    const outcome = await answerApproval(id, call, approval, withReason);
    if (outcome !== 'answered') setBusy(false);
    if (outcome instanceof Error) setRefusal(outcome);
    if (outcome instanceof Error || outcome === 'refused') return;
    const { answer, always, arguments: changed } = given;
    const did = answeredBy(answer, nameOfMe.value, { isChanged: changed !== undefined, always });
    const why = withReason === given ? '' : ` (${shortLine(reason)})`;
    const asking = answer === 'approve' && approval.asks;
    (onDone ?? goOn)(asking ? `Sent to “${asking.server}”` : did + why, changed);
  };
  const cancel = () => {
    setEdited('');
    setRefusal(null);
    if (over !== null) onDone?.('Discarded');
  };
  const isBlocked = isBusy || over !== null;
  return { isBusy: isBlocked, refusal, reason, setReason, edited, setEdited, cancel, field, edit, say };
}

/** The text box when it opens, and its button when it closes; not when a kept text opens with the page. */
function useFocusOnChange(isEditing: boolean) {
  const field = useRef<HTMLTextAreaElement>(null);
  const edit = useRef<HTMLButtonElement>(null);
  const before = useRef(isEditing);
  useLayoutEffect(() => {
    if (before.current !== isEditing) (isEditing ? field : edit).current?.focus();
    const last = field.current?.closest('.edit-arguments')?.querySelector('label:last-of-type textarea');
    if (isEditing && !before.current) last?.scrollIntoView({ block: 'nearest' });
    before.current = isEditing;
  }, [isEditing]);
  return [field, edit] as const;
}

function Choices({ answering, change: { isRead, isOutdated, seen }, call, agent, approval }: AnswersProps) {
  const { mayHaveRun, approvalId, asks } = approval;
  const covers = isOperator.value ? approval.covers?.replace(LONG_VALUE, ' with this same $1') : undefined;
  const { isBusy, refusal, reason, edit, setEdited, say } = answering;
  return (
    <>
      <Reason {...{ answering, mayHaveRun }} />
      <div class="buttons choices">
        <div class="buttons decide">
          <Refusal of={refusal} />
          {(mayHaveRun ? AFTER_A_CRASH : BEFORE_IT_RUNS).map(({ answer, label, key }) => (
            <Button
              key={answer}
              class={answer === 'approve' ? 'primary' : undefined}
              disabled={
                isBusy || (answer === 'approve' && !isRead) || (answer === 'result' && reason.trim() === '')
              }
              shortcut={key}
              aria-busy={answer === 'approve' && !isRead}
              onClick={() =>
                say({
                  answer,
                  ...(answer === 'approve' && { seen }),
                  ...(answer === 'result' && { result: reason }),
                })
              }
            >
              {label}
            </Button>
          ))}
        </div>
        <div class="buttons">
          {!mayHaveRun && !asks && !call.tool.startsWith('permit_') && (
            <button
              type="button"
              ref={edit}
              disabled={isBusy}
              onClick={() => setEdited(offeredArguments(call))}
            >
              Edit arguments
            </button>
          )}
          {covers !== undefined && (
            <Button
              disabled={isBusy || !isRead || isOutdated}
              aria-describedby={`covers-${approvalId}`}
              onClick={() => void say({ answer: 'approve', always: true, seen })}
            >
              Allow for this conversation
            </Button>
          )}
        </div>
      </div>
      {covers !== undefined && (
        <p class="muted" id={`covers-${approvalId}`}>
          “Allow for this conversation” also approves later {escapeHidden(covers)} by{' '}
          <bdi>{nameOf(agent)}</bdi>, in this conversation alone, until the agent is stopped.
        </p>
      )}
    </>
  );
}

function Reason({ answering, mayHaveRun }: Pick<AnswersProps, 'answering'> & Pick<Approval, 'mayHaveRun'>) {
  const Field = mayHaveRun ? 'textarea' : 'input';
  const sends = answering.edited === '' ? 'Approve or Deny' : 'Run';
  const hint = matchMedia('(max-width: 46rem)').matches ? '' : `, then ${sends}`; // a phone has no room for it
  return (
    <Field
      aria-label={mayHaveRun ? 'What it returned' : 'Reason'}
      aria-keyshortcuts={mayHaveRun ? 'r' : undefined}
      placeholder={mayHaveRun ? 'Its result, if known' : `Reason (optional)${hint}`}
      value={answering.reason}
      onInput={onText(answering.setReason)}
    />
  );
}

/** It is above, in full. */
const LONG_VALUE = / with (\w+) "(?=.{80}|[^"]*\\)(?:[^"\\]|\\.)*"/;
const BEFORE_IT_RUNS = [
  { answer: 'approve', label: 'Approve', key: 'a' },
  { answer: 'deny', label: 'Deny', key: 'd' },
] as const;
const AFTER_A_CRASH = [
  { answer: 'rerun', label: 'Run it again', key: '1' },
  { answer: 'failed', label: 'It did not run', key: '2' },
  { answer: 'result', label: 'It returned this', key: '3' },
] as const;

type WholeCallProps = Pick<AnswersProps, 'call' | 'change' | 'over'> & { onEnd(end: Element | null): void };

/** What it would change comes first, and then texts that say the same are folded. `onEnd` gets the end of what would run, once it is read. */
function WholeCall({ call: asked, over, change, onEnd }: WholeCallProps) {
  const { lines, why, isRead, wasRead, of } = change;
  const title = typeof over === 'string' ? AS_IT_WAS : isRead ? NOW_AND_AFTER : EARLIER;
  const call = { ...asked, arguments: of, asked: of === asked.arguments ? undefined : asked.arguments };
  const views = argumentViews(call.tool, argumentsOf(call));
  const said = lines ? views.filter(({ kind }) => kind === 'text') : [];
  const name = `${call.place.index} ${call.place.position}`;
  return (
    <div class="whole-call fits" aria-busy={!wasRead}>
      <code class="tool">{visibleText(call.tool)}</code>
      {views
        .filter(({ kind }) => !lines || kind === 'value')
        .map((view) => (
          <Argument key={`${view.kind} ${view.name}`} view={view} />
        ))}
      {lines && <Argument view={{ kind: 'edit', name: title, lines }} />}
      {why !== null && <p>{isRead || !wasRead ? escapeHidden(why) : `${EARLIER}: ${escapeHidden(why)}`}</p>}
      {!wasRead && why === null && <p class="muted">Reading the file…</p>}
      {views.length === 0 && <Arguments call={call} />}
      {wasRead && <div class="call-end" ref={onEnd} />}
      {views.length > 0 && <Proposal call={call} />}
      {said.map((view) => (
        <Fold
          key={view.name}
          name={`whole ${view.name} ${name}`}
          summary={<span class="muted">whole {view.name}</span>}
        >
          <Argument view={view} />
        </Fold>
      ))}
      {views.length > 0 && (
        <Fold name={`json ${name}`} summary={<span class="muted">as JSON</span>}>
          <Scrolled text={argumentsBlock(call.arguments)} />
        </Fold>
      )}
    </div>
  );
}

const NOW_AND_AFTER = 'the file as it is now, and after this call';
const AS_IT_WAS = 'the file as it was, and with this call';
const EARLIER = 'before your last change of the arguments';

/** Tools that say what a call would change. */
const SHOW_CHANGES = ['fs_write', 'fs_edit'];
/** Another call or a person may change the file meanwhile. */
const READ_AGAIN_MS = 3_000;

/** While a person types. */
const PAUSE_MS = 400;

/** `of`: the arguments, in canonical form. */
type ReadChange = AnswerOf<'change'> & { readonly of: string };

/**
 * The lines that this call would change with its arguments, or with edited ones, or why there are none to show. It is answered only
 * when those of exactly its arguments are read (`isRead`). `of`: the arguments of what is shown. `isOutdated`: the file has changed
 * since the person began to read.
 */
function useChange(
  { tool, arguments: own }: Call,
  { approvalId, mayHaveRun }: Approval,
  { edited, isBusy }: ReturnType<typeof useAnswers>,
) {
  const isAsked = SHOW_CHANGES.includes(tool) && !mayHaveRun && mayApprove.value;
  const written = edited === '' ? own : canonicalArguments(edited);
  const canRun = readArguments(written).ok;
  const [paused, pause] = useState(canRun ? written : own);
  useTimeout(() => pause(written), canRun ? PAUSE_MS : null, [written]);
  const of = written === own ? own : paused;
  const ask = async (): Promise<ReadChange | null> => {
    if (!isAsked) return null;
    try {
      return { of, ...(await requests.change(approvalId, of === own ? undefined : JSON.parse(of))) };
    } catch (error) {
      if (answer?.of === of || isRetryable(error)) throw error; // what was read stays
      return { of, change: null, why: (error as Error).message };
    }
  };
  const now = useNow(isAsked && !isBusy ? READ_AGAIN_MS : null);
  const { answer, fault } = useRequest(ask, [approvalId, isAsked, of, now]);
  /** What the person read before an answer. */
  const [read, accept] = useState<ReadChange | null>(null);
  useLayoutEffect(() => {
    if (answer && answer.of !== read?.of) accept(answer); // other arguments have a difference of their own
  }, [answer]);
  useLayoutEffect(() => {
    if (isBusy) accept(null); // a refusal says that the file has changed
  }, [isBusy]);
  const text = answer?.change ?? null;
  const lines = text === null ? null : differenceLines(text);
  const cause = answer ? (answer.why ?? null) : fault;
  const said = cause && `No difference can be shown: ${cause}.`;
  return {
    ...{ lines: lines?.slice(2) ?? null, why: lines ? null : (text ?? said) },
    of: answer?.of ?? own,
    seen: answer?.seen,
    isRead: !isAsked || answer?.of === written,
    wasRead: !isAsked || answer !== null,
    isOutdated: read !== null && read.of === answer?.of && read.change !== answer.change,
    accept: () => accept(answer),
  };
}

export function Arguments({ call }: { readonly call: Call }) {
  const views = argumentViews(call.tool, argumentsOf(call));
  return (
    <>
      {views.length === 0 && <Scrolled text={argumentsBlock(call.arguments)} />}
      {views.map((view) => (
        <Argument key={`${view.kind} ${view.name}`} view={view} />
      ))}
      <Proposal call={call} />
    </>
  );
}

function Proposal({ call: { asked, ...call } }: { readonly call: Call }) {
  if (asked === undefined) return null;
  return (
    <Fold isOpen summary={<span class="muted">as asked for, before the change</span>}>
      <Arguments call={{ ...call, arguments: asked }} />
    </Fold>
  );
}

function Argument({ view }: { readonly view: ArgumentView }) {
  if (view.kind === 'value') {
    return (
      <p class="argument">
        <span class="muted">{escapeHidden(view.name)}</span>{' '}
        <code>
          <VisibleText text={view.text} />
        </code>
      </p>
    );
  }
  return (
    <div class="argument">
      <p class="muted">{escapeHidden(view.name)}</p>
      {view.kind === 'text' ? <Scrolled text={view.text} /> : <Diff lines={view.lines} />}
    </div>
  );
}

/** Policies are part of the configuration, which the API does not change. */
function AlwaysAllow({ call, agent }: { readonly call: Call; readonly agent: string }) {
  const offered = policyRule(agent, call.tool, argumentsOf(call));
  return (
    <Fold name={`rule ${call.place.index} ${call.place.position}`} summary="As a rule for all conversations…">
      <div class="rule fits">
        {'reason' in offered ? (
          <p>{offered.reason}</p>
        ) : (
          <>
            <p>
              This rule allows every call of {escapeHidden(call.tool)}
              {escapeHidden(limitOf(offered.fixed, offered.open))} by this agent. Put it into{' '}
              <code>parley.yaml</code> and run <code>parley reload</code>.
            </p>
            <Scrolled text={offered.rule} />
            <CopyButton text={() => offered.rule} label="Copy the rule" />
          </>
        )}
      </div>
    </Fold>
  );
}

function limitOf(fixed: readonly string[], open: readonly string[]): string {
  if (fixed.length === 0) return '';
  const free = open.length > 0 ? `, whatever its ${open.join(' and ')}` : ', and nothing else,';
  return ` with exactly this ${fixed.join(' and ')}${free}`;
}

/**
 * Other arguments for a call that waits: texts in fields of their own, if the agent asked with texts alone, else JSON. The form stays
 * while the person writes.
 */
function EditArguments({ answering, change, call, agent, approval, over = null }: AnswersProps) {
  const { isBusy, refusal, field, edited, setEdited, cancel, say } = answering;
  useLayoutEffect(() => {
    document.activeElement?.closest('.edit-arguments textarea')?.scrollIntoView({ block: 'nearest' });
  }, [change.of]); // the difference above has another length
  const read = parseJson(edited);
  const given = isRecord(read) ? read : null;
  const isTexts = hasPlainTexts(argumentsOf(call));
  const fields = isTexts && given ? Object.entries(given) : ([['arguments', edited]] as const);
  return (
    <div class="edit-arguments column">
      {fields.map(([name, text], place) => (
        <label key={name}>
          New {name}
          <textarea
            ref={place === 0 ? field : undefined}
            value={String(text)}
            onInput={onText((next) => setEdited(isTexts ? textOf({ ...given, [name]: next }) : next))}
          />
        </label>
      ))}
      {over === null && (
        <p class="muted">
          {given
            ? `The call runs with these arguments, recorded as changed by you. ${nameOf(agent)} reads which ones.`
            : 'This is not a JSON object.'}
        </p>
      )}
      <Reason {...{ answering }} mayHaveRun={approval.mayHaveRun} />
      <div class="buttons decide">
        <Refusal of={refusal} />
        <Button
          disabled={isBusy || given === null || !change.isRead}
          class="primary"
          shortcut="a"
          aria-busy={!change.isRead}
          onClick={() => given && void say({ answer: 'approve', arguments: given, seen: change.seen })}
        >
          Run with these arguments
        </Button>
        <QuietButton onClick={cancel}>Cancel</QuietButton>
      </div>
    </div>
  );
}

/** Each is a text without hidden characters: JSON would show those as escapes. */
function hasPlainTexts(given: object): boolean {
  const all = Object.entries(given);
  const isPlain = ([name, value]: readonly [string, unknown]) =>
    typeof value === 'string' && escapeHidden(name + value) === name + value;
  return all.length > 0 && all.every(isPlain);
}

const textOf = (given: object): string => escapeHidden(pretty(JSON.stringify(given)));
