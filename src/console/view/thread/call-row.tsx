import { type ComponentChildren, Fragment } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { EntryOf, ModelFailure, ReportedCall } from '../../../conversation/index.ts';
import { resultFailure } from '../../../conversation/log/model-failure.ts';
import { filesOf } from '../../../conversation/log/parts.ts';
import { answeredBy } from '../../../conversation/log/words.ts';
import { differenceLines } from '../../../conversation/text/line-diff.ts';
import { escapeHidden } from '../../../kernel/hidden.ts';
import { argumentsBlock, argumentsLine, duration, pretty, shortLine } from '../../model/format.ts';
import { type Call, isPending, type Question, questionOf } from '../../model/thread/calls.ts';
import {
  answerQuestion,
  fieldsOf,
  isBeingAnswered,
  moveAnswer,
  offeredArguments,
  wouldAnswerAnother,
} from '../../state/approvals.ts';
import { nameOf } from '../../state/conversation.ts';
import { activityOf } from '../../state/conversations.ts';
import { useConversation, useKeptText } from '../../state/kept.ts';
import { goOnAfter } from '../../state/keys.ts';
import { mayPost, refused } from '../../state/session.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { Button, CopyButton, LinkButton, onEnter, onSubmit, onText, Refusal } from '../parts/controls.tsx';
import { EntryLink, Fold, Icon } from '../parts/parts.tsx';
import { Diff, Scrolled } from '../parts/text.tsx';
import { ApprovalCard, Arguments } from './approval-card.tsx';
import { FailureText } from './failure-view.tsx';
import { Files } from './files.tsx';

type CallProps = { call: Call; agent: string };

export function CallRow({ call, agent }: CallProps) {
  const question = questionOf(call, agent);
  const isOver = call.result !== null || call.answer !== null;
  const didWait = useRef(!isOver).current;
  const isAnswering = isBeingAnswered(useConversation(), call);
  const Row = question ? QuestionRow : ToolRow;
  return <Row {...{ call, agent, didWait }} isOver={isOver && !isAnswering} />;
}

/** `didWait`: it was shown with its fields before. `isOver`: and this tab is not answering it. */
type RowProps = CallProps & { didWait: boolean; isOver: boolean };

function QuestionRow({ call, agent, didWait, isOver }: RowProps) {
  const question = questionOf(call, agent);
  const conversation = useConversation();
  const keepsText = isOver && wouldAnswerAnother(agent);
  const sent = call.result?.content ?? undefined;
  useLayoutEffect(() => {
    if (isOver && question) moveAnswer(conversation, question);
  }, [isOver, keepsText]);
  return (
    <>
      {question && <QuestionCard question={question} />}
      {keepsText && <KeptText field={fieldsOf.answer(call)} what="answer" sent={sent} isFocused={didWait} />}
    </>
  );
}

function ToolRow({ call, agent, didWait, isOver }: RowProps) {
  const conversation = useConversation();
  const status = statusOf(call);
  const failure = failureOf(call);
  const reported = call.status === 'running' ? activityOf(conversation, agent)?.progress : undefined;
  const progress = reported?.tool === call.tool ? reported.text : '';
  const { approval, answer, released, result } = call;
  const files = result ? filesOf(result) : [];
  const given = answer?.arguments;
  const asks = approval?.asks;
  const kept = { isFocused: didWait };
  const state = `${stateText(call)}${progress && `: ${escapeHidden(progress)}`}`;
  return (
    <div class={`call frame text-small breaks ${status}`}>
      <CallLine
        name={`call ${call.place.index} ${call.place.position}`}
        tool={call.tool}
        preview={status === 'waiting' ? '' : argumentsLine(call.arguments)}
        state={files.length > 0 ? `${files.length} file${files.length === 1 ? '' : 's'}, ${state}` : state}
        given={
          status !== 'waiting' && (
            <>
              <Arguments call={call} />
              {asks && given && (
                <>
                  <h4>Answer of {escapeHidden(answer.author.name)}</h4>
                  <Scrolled text={argumentsBlock(given)} />
                </>
              )}
            </>
          )
        }
        result={
          result && (
            <>
              <Scrolled text={pretty(result.content ?? '')} isOutput />
              <Files files={files} />
              {result.fullOutputPath && <p class="muted">full output: {result.fullOutputPath}</p>}
            </>
          )
        }
      />
      {failure && <FailureText failure={failure} />}
      {approval && !answer && !result && (
        <ApprovalCard key={approval.approvalId} {...{ approval, call, agent }} />
      )}
      {released && <p class="muted answered text-tiny">{answerText(released, true)}</p>}
      {answer && (
        <p class="muted answered text-tiny">
          {asks && `${escapeHidden(asks.server)} asked “${escapeHidden(asks.message)}” `}
          {asks && given ? (
            <>
              and got <code>{argumentsLine(given)}</code> from {escapeHidden(answer.author.name)}
            </>
          ) : (
            answerText(answer, !asks)
          )}
        </p>
      )}
      {approval && isOver && (
        <Fragment key={approval.approvalId}>
          <KeptText {...kept} field={fieldsOf.reason(approval)} what="reason" sent={answer?.reason} />
          <KeptText
            {...kept}
            field={fieldsOf.arguments(call, approval)}
            what={asks ? 'answer' : 'arguments'}
            sent={offeredArguments(call)}
          />
        </Fragment>
      )}
    </div>
  );
}

function answerText(entry: EntryOf<'approval-answered'>, isOfCall: boolean): ComponentChildren {
  const { answer, author, arguments: changed, reason, grant } = entry;
  const isChanged = isOfCall && changed !== undefined;
  const always = grant === undefined ? entry.always : true;
  return (
    <>
      <span>
        {escapeHidden(answeredBy(answer, author.name, { isChanged, always }))}
        {grant !== undefined && [' in ', <EntryLink key={grant} index={grant} />]}
      </span>
      {reason && <>: {escapeHidden(reason)}</>}
    </>
  );
}

/** `isFocused`: it takes the place of the field in which the person types. */
type KeptProps = { field: string; what: string; sent: string | undefined; isFocused: boolean };

/** What a person wrote at a call that is over, until it is dismissed (KEPT-1). */
function KeptText({ field, what, sent, isFocused }: KeptProps) {
  const [text, setText] = useKeptText(field);
  const box = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    if (text === sent) setText('');
    else if (isFocused && document.activeElement === document.body) box.current?.focus();
  }, []);
  if (text === '') return null;
  return (
    <div class="answered text-tiny">
      <label class="stacked-1">
        Your {what}, not sent
        <textarea ref={box} value={text} onInput={onText(setText)} />
      </label>
      <CopyButton text={() => text} label="Copy" />{' '}
      <LinkButton onClick={() => setText('')}>Dismiss</LinkButton>
    </div>
  );
}

/** `name`: unique in the conversation. */
type ReportedProps = { call: ReportedCall; agent: string; name: string };

/** A call that an agent in another process says it made. */
export function ReportedRow({ call, agent, name }: ReportedProps) {
  const { title, kind, status, arguments: given, result } = call;
  const lines = result === undefined ? null : differenceLines(result);
  return (
    <div class={`call reported frame text-small breaks ${status === 'failed' ? 'failed' : 'done'}`}>
      <CallLine
        name={name}
        tool={title}
        preview={escapeHidden(kind)}
        state={escapeHidden(`reported by ${nameOf(agent)}: ${status}`)}
        given={given !== undefined && <Scrolled text={argumentsBlock(given)} />}
        result={result && (lines ? <Diff lines={lines} /> : <Scrolled text={pretty(result)} isOutput />)}
      />
    </div>
  );
}

type LineProps = Readonly<
  Record<'name' | 'tool' | 'preview' | 'state', string> & Record<'given' | 'result', ComponentChildren>
>;

function CallLine({ name, tool, preview, state, given, result }: LineProps) {
  const heading = (
    <>
      <code class="tool">{escapeHidden(tool)}</code>
      <span class="muted preview">{preview}</span>
      <span class="meta">{state}</span>
    </>
  );
  if (!given && !result) return <p class="call-line">{heading}</p>;
  return (
    <Fold name={name} summary={heading}>
      {given && <h4>Arguments</h4>}
      {given}
      {result && <h4>Result</h4>}
      {result}
    </Fold>
  );
}

/** A denied call did what the person wanted. */
function failureOf(call: Call): ModelFailure | null {
  return call.result && !isDenied(call) ? resultFailure(call.result.content ?? '') : null;
}

function isDenied({ approval, answer }: Call): boolean {
  return answer?.answer === 'deny' && !approval?.asks;
}

function statusOf(call: Call): string {
  if (!call.result && (call.isCallers || isPending(call))) return 'waiting';
  if (failureOf(call)) return 'failed';
  return call.status;
}

function stateText(call: Call): string {
  if (isDenied(call)) return 'denied';
  const took = call.result?.duration;
  // The time that a person took is not in it: a form may have been open for a minute.
  const wait = call.approval?.asks ? ' and the wait for a person' : '';
  if (statusOf(call) === 'failed')
    return took === undefined ? 'failed' : `failed after ${duration(took)}${wait}`;
  if (!call.hasRun && call.result?.content?.startsWith('[not run: ')) return 'not run'; // `unfinished` in turn-entries.ts
  if (call.result) return took === undefined ? 'done' : duration(took);
  if (statusOf(call) === 'waiting') return call.isCallers ? 'waits for its caller' : 'waits for a person';
  if (call.status === 'running') return 'runs';
  return call.answer ? 'waits for the calls before it' : 'asked';
}

const quoted = (options: readonly string[]) => options.map((option) => `“${option}”`).join(', ');

type QuestionProps = { question: Question; isOver?: boolean; onDone?: (did: string) => void };

export function QuestionCard({ question: asked, isOver, onDone }: QuestionProps) {
  const { call, question, options } = asked;
  const [text, setText] = useKeptText(fieldsOf.answer(call));
  const [refusal, setRefusal] = useState<Error | null>(null);
  const id = useConversation();
  const failure = failureOf(call);
  const say = async (content: string) => {
    const goOn = goOnAfter();
    const outcome = await answerQuestion(id, asked, content);
    setRefusal(outcome instanceof Error ? outcome : null);
    if (outcome !== 'answered') return;
    setText('');
    (onDone ?? goOn)(`Answered “${shortLine(content, 60)}”`);
  };
  const send = () => !isOver && text.trim() !== '' && say(text.trim());
  return (
    <fieldset
      class={`ask-card question column frame breaks ${call.result ? 'answered' : ''}`}
      tabIndex={-1}
      aria-label="A question"
    >
      <div class="question-text">
        <Icon name="question" />
        <Markdown text={question} />
      </div>
      {failure ? (
        <FailureText failure={failure} />
      ) : call.result ? (
        <p class="muted">
          {call.resultBy !== null && `answered by ${escapeHidden(call.resultBy)}: `}
          <bdi>{shortLine(call.result.content ?? '', 200)}</bdi>
          {options.length > 0 && ` (of ${quoted(options)})`}
        </p>
      ) : !mayPost.value ? (
        <p class="muted">
          {options.length > 0 && `Options: ${quoted(options)}. `}
          {refused('not answer this', 'post')}
        </p>
      ) : (
        <form class="buttons" onSubmit={onSubmit(send)}>
          <Refusal of={refusal} />
          {options.map((option, place) => (
            <Button key={option} disabled={isOver} shortcut={`${place + 1}`} onClick={() => void say(option)}>
              {option}
            </Button>
          ))}
          <span class="buttons typed">
            <textarea
              aria-label="Your answer"
              aria-keyshortcuts="r"
              placeholder={options.length > 0 ? 'Or type your answer' : 'Your answer'}
              rows={text.split('\n', 8).length}
              value={text}
              onInput={onText(setText)}
              onKeyDown={onEnter(send)}
            />
            <button type="submit" class="primary" disabled={isOver || text.trim() === ''}>
              Answer
            </button>
          </span>
        </form>
      )}
    </fieldset>
  );
}
