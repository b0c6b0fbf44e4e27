import type { NodeVisit, PathNode, RunSoFar } from '../../../conversation/progress/runs.ts';
import { runPath, wayOf } from '../../../conversation/progress/runs.ts';
import { endingOf, FORK_ENDED } from '../../model/thread/blocks.ts';
import { type Thread, type Until, waitOf } from '../../model/thread/thread.ts';
import { isDeleted, nameOf, useThread } from '../../state/conversation.ts';
import { jumpTo } from '../../state/route.ts';
import { workflows } from '../../state/session.ts';
import { LinkButton } from '../parts/controls.tsx';
import { Avatar, Fold, Name } from '../parts/parts.tsx';

export function Runs() {
  const here = useThread();
  const runs = here?.thread.runs ?? [];
  const newest = runs.at(-1);
  if (!newest || isDeleted(here)) return null;
  const earlier = runs.slice(0, -1).reverse();
  return (
    <section class="runs text-small" aria-label="Runs">
      <Fold name={`run-${newest.runId}`} summary={<Path run={newest} />}>
        <Steps run={newest} />
        {earlier.length > 0 && (
          <section aria-label="Earlier runs">
            <h3 class="muted">Earlier runs</h3>
            {earlier.map((run) => (
              <Fold key={run.runId} name={`run-${run.runId}`} summary={<Path run={run} />}>
                <Steps run={run} />
              </Fold>
            ))}
          </section>
        )}
      </Fold>
    </section>
  );
}

function nodesOf(run: RunSoFar): readonly PathNode[] {
  const workflow = workflows.value.find(({ id }) => id === run.workflowId);
  return runPath(run, workflow);
}

function Path({ run }: { readonly run: RunSoFar }) {
  const thread = useThread()?.thread;
  const outcome = run.steps.at(-1)?.result?.outcome;
  const open = run.isOver ? [] : run.steps.flatMap(({ agent, result }) => (agent && !result ? agent : []));
  const idle = open.find((agent) => thread?.stateOf(agent).status === 'idle');
  return (
    <span class="run-line wraps">
      <span class="run-name">
        Run {run.workflowId}
        {run.isOver && <span class="muted"> ended{outcome && `: ${outcome}`}</span>}
        {idle && thread && <span class="waits">{` ${nameOf(idle)} ${workOf(idle, thread)}`}</span>}
      </span>
      <ol class="run-path wraps">
        {nodesOf(run).map(({ node, agent, state, visits, branch, relation }, place, path) => (
          <li
            key={node}
            class={`inline ${state}${branch ? ' branch' : ''}`}
            style={{ '--sign': SIGNS[path[place + 1]?.relation ?? 'next'] }}
            aria-current={state === 'current' ? 'step' : undefined}
          >
            {agent && <Avatar id={agent} size="small" />}
            {node}
            {visits > 1 && <span class="muted"> ×{visits}</span>}
            <span class="unseen">
              {relation === 'beside' && `, side by side with ${path[place - 1]?.branch}`}
              {relation === 'apart' && ', another way'}
              {LABELS[state]}
            </span>
          </li>
        ))}
      </ol>
    </span>
  );
}

/** Between two nodes. */
const SIGNS = { next: '"→"', beside: '"+"', apart: '"|"' } as const;
const LABELS = { done: ', done', current: ', current node', ahead: ', not entered' } as const;

const WAITS: Readonly<Record<Until, string>> = {
  approval: 'waits for an approval',
  outcome: 'waits: the outcome of its call is unknown',
  question: 'waits for an answer',
  agent: 'waits for another agent',
  program: 'waits for its program',
};

function workOf(agent: string, thread: Thread): string {
  const { status, isStopped } = thread.stateOf(agent);
  if (isStopped) return 'is stopped';
  if (status === 'idle') return lastEnd(agent, thread) ?? `waits for a message to @${agent}`;
  return status === 'running' ? 'works on it' : WAITS[waitOf(thread, agent)];
}

/** Null: its last turn was completed. */
function lastEnd(agent: string, { entries }: Thread): string | null {
  const last = entries.findLast((entry) => entry.type === 'turn-ended' && entry.agent === agent);
  if (last?.type !== 'turn-ended' || last.outcome === 'completed') return null;
  if (last.outcome === 'limited') return 'reached a limit: resume it';
  const stop = endingOf(entries, last, nameOf).startsWith(FORK_ENDED) ? 'ended with the fork' : 'was stopped';
  return `${last.outcome === 'aborted' ? stop : 'failed'}: it begins again with the next message`;
}

function Steps({ run }: { readonly run: RunSoFar }) {
  const thread = useThread()?.thread;
  const nodes = new Map(nodesOf(run).map((one) => [one.node, one]));
  return (
    <ol class="run-steps stacked-3">
      {run.steps.map((step) => (
        <li key={step.index} class={`stacked-1 ${step.result ? 'done' : run.isOver ? 'ahead' : 'current'}`}>
          <p class="by wraps text-small">
            {step.agent && <Avatar id={step.agent} size="small" />}
            <LinkButton onClick={() => jumpTo(step.index)}>{step.node}</LinkButton>
            {step.agent && <Name id={step.agent} name={nameOf(step.agent)} />}
            {thread && step.agent && !step.result && !run.isOver && (
              <span class="muted">{workOf(step.agent, thread)}</span>
            )}
          </p>
          <Outcomes step={step} node={nodes.get(step.node)} />
          {step.result?.summary && (
            <p class="handed-on" dir="auto">
              {step.result.summary}
            </p>
          )}
        </li>
      ))}
    </ol>
  );
}

function Outcomes({ step, node }: { readonly step: NodeVisit; readonly node: PathNode | undefined }) {
  const { result } = step;
  const ways = node?.ways ?? [];
  const taken = wayOf(step, ways);
  return (
    <ul class="outcomes muted text-tiny wraps" aria-label="Outcomes">
      {ways.map((way) => (
        <li key={`${way.isCondition} ${way.by}`} class={way === taken ? 'taken' : ''}>
          {way.isCondition ? `if ${way.by}` : way.by} <span aria-hidden="true">→</span>
          <span class="unseen">leads to</span> {way.to.join(' and ')}
          {way === taken && <span class="unseen">, taken</span>}
        </li>
      ))}
      {result && (!taken || taken.by !== result.outcome) && <li class="taken">{result.outcome}</li>}
    </ul>
  );
}
