import { useState } from 'preact/hooks';
import { escapeHidden, visibleText } from '../../kernel/hidden.ts';
import { requests } from '../api/requests.ts';
import { type Approval, type Call, type Question, questionOf } from '../model/blocks.ts';
import { argumentsBlock, argumentsLine, duration, oneLine, pretty } from '../model/format.ts';
import { opened } from '../state/conversation.ts';
import { attempt, sender } from '../state/session.ts';
import { Fold, Icon } from './parts.tsx';

/** One tool call with arguments, result and duration: folded, unless it needs a person. */
export function CallRow({ call, agent }: { readonly call: Call; readonly agent: string }) {
  const question = questionOf(call, agent);
  if (question) return <QuestionCard question={question} />;
  return (
    <div class={`call ${statusOf(call)}`}>
      <Fold
        summary={
          <>
            <code class="tool">{escapeHidden(call.tool)}</code>
            <span class="muted preview">{argumentsLine(call.arguments)}</span>
            <span class="meta">{wordOf(call)}</span>
          </>
        }
      >
        <h4>Arguments</h4>
        <pre>{argumentsBlock(call.arguments)}</pre>
        {call.result && (
          <>
            <h4>Result</h4>
            <pre>{pretty(call.result.content)}</pre>
            {call.result.fullOutputPath && <p class="muted">full output: {call.result.fullOutputPath}</p>}
          </>
        )}
      </Fold>
      {call.approval && call.approval.answer === null && !call.result && (
        <ApprovalCard approval={call.approval} call={call} />
      )}
      {call.approval?.answer && (
        <p class="muted answered">
          {call.approval.answer} by {call.approval.by}
        </p>
      )}
    </div>
  );
}

function statusOf(call: Call): string {
  if (call.approval && call.approval.answer === null && !call.result) return 'waiting';
  return call.status;
}

function wordOf(call: Call): string {
  if (call.result) return call.result.duration === null ? 'done' : duration(call.result.duration);
  if (statusOf(call) === 'waiting') return 'waits for a person';
  return call.status === 'running' ? 'runs' : 'asked';
}

function ApprovalCard({ approval, call }: { readonly approval: Approval; readonly call: Call }) {
  const [isBusy, setBusy] = useState(false);
  const [reason, setReason] = useState('');
  const say = (answer: string) => async () => {
    setBusy(true);
    const more = answer === 'result' ? { result: reason } : reason.trim() === '' ? {} : { reason };
    await attempt(() => requests.answer(approval.approvalId, answer, { ...more, ...sender() }));
    setBusy(false);
  };
  const choices = approval.mayHaveRun ? AFTER_A_CRASH : BEFORE_IT_RUNS;
  return (
    <fieldset class="ask-card" aria-label={`May ${escapeHidden(call.tool)} run?`}>
      <p>
        {approval.mayHaveRun
          ? 'The daemon ended while this call was running. It may have taken effect.'
          : 'This call may change something outside. May it run?'}
        {approval.why && <span class="muted"> {escapeHidden(approval.why)}</span>}
      </p>
      <code class="tool">{visibleText(call.tool)}</code>
      <pre>{argumentsBlock(call.arguments)}</pre>
      <input
        aria-label={approval.mayHaveRun ? 'What it gave' : 'Reason'}
        placeholder={approval.mayHaveRun ? 'its result, if you know it' : 'reason (optional)'}
        value={reason}
        onInput={(event) => setReason(event.currentTarget.value)}
      />
      <div class="buttons">
        {choices.map(({ answer, label, kind }) => (
          <button
            type="button"
            key={answer}
            class={kind}
            disabled={isBusy}
            onClick={() => void say(answer)()}
          >
            {label}
          </button>
        ))}
      </div>
    </fieldset>
  );
}

const BEFORE_IT_RUNS = [
  { answer: 'approve', label: 'Approve', kind: 'primary' },
  { answer: 'deny', label: 'Deny', kind: '' },
];
const AFTER_A_CRASH = [
  { answer: 'rerun', label: 'Run it again', kind: 'primary' },
  { answer: 'failed', label: 'It failed', kind: '' },
  { answer: 'result', label: 'It gave this', kind: '' },
];

function QuestionCard({ question: { call, agent, question, options } }: { readonly question: Question }) {
  const [text, setText] = useState('');
  const id = opened.value?.id ?? '';
  const say = (content: string) =>
    attempt(() =>
      requests.post(id, { id: crypto.randomUUID(), content, to: [agent], replyTo: call.id, ...sender() }),
    );
  return (
    <fieldset class={`ask-card question ${call.result ? 'answered' : ''}`} aria-label="A question">
      <p>
        <Icon name="question" />
        {question}
      </p>
      {call.result ? (
        <p class="muted">answered: {oneLine(call.result.content, 200)}</p>
      ) : (
        <form
          class="buttons"
          onSubmit={(event) => {
            event.preventDefault();
            if (text.trim() !== '') void say(text.trim());
          }}
        >
          {options.map((option) => (
            <button type="button" key={option} onClick={() => void say(option)}>
              {option}
            </button>
          ))}
          <input
            aria-label="Your answer"
            placeholder="or type your answer"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <button type="submit" class="primary" disabled={text.trim() === ''}>
            Answer
          </button>
        </form>
      )}
    </fieldset>
  );
}
