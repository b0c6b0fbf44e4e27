import type { CallPlace, Entry } from '../log/entry.ts';

/** Laws of approvals, and of how often a call starts. */

interface Call {
  /** The open approval request, and whether it says that the call may have run. */
  question: { readonly id: string; readonly mayHaveRun: boolean } | null;
  wasAsked: boolean;
  /** A person approved a start that has not happened yet. */
  mayStart: boolean;
  starts: number;
}

const ANSWERS_TO_FRESH: readonly string[] = ['approve', 'deny'];
const ANSWERS_TO_UNKNOWN: readonly string[] = ['rerun', 'result', 'failed'];

/** L11, L12: one open request at a time, one answer to each, one start for each approval; a repeated start is marked. */
export function checkApprovals(entries: readonly Entry[], faults: string[]): void {
  const calls = new Map<string, Call>();
  const callAt = ({ index, position }: CallPlace): Call => {
    const key = `c${index}_${position}`;
    const known = calls.get(key) ?? { question: null, wasAsked: false, mayStart: false, starts: 0 };
    calls.set(key, known);
    return known;
  };
  for (const entry of entries) {
    const fault = (words: string) => faults.push(`entry ${entry.index}: ${words}`);
    if (entry.type === 'approval-requested') {
      const call = callAt(entry.call);
      if (call.question) fault('a second question about one call');
      if (entry.mayHaveRun !== call.starts > 0) fault('the question has the wrong mayHaveRun');
      call.question = { id: entry.approvalId, mayHaveRun: entry.mayHaveRun };
      call.wasAsked = true;
      call.mayStart = false;
    } else if (entry.type === 'approval-answered') {
      const call = [...calls.values()].find(({ question }) => question?.id === entry.approvalId);
      if (!call?.question) {
        fault('an answer to no open question');
        continue;
      }
      checkAnswer(entry.answer, call.question.mayHaveRun, fault);
      call.question = null;
      call.mayStart = entry.answer === 'approve' || entry.answer === 'rerun';
    } else if (entry.type === 'tool-started') {
      checkStart(entry, callAt(entry.call), fault);
    }
  }
}

function checkAnswer(answer: string, mayHaveRun: boolean, fault: (words: string) => void): void {
  const misfits = mayHaveRun ? ANSWERS_TO_FRESH : ANSWERS_TO_UNKNOWN;
  if (misfits.includes(answer)) fault(`${answer} does not answer that question`);
}

function checkStart(
  { risk, rerun }: Extract<Entry, { type: 'tool-started' }>,
  call: Call,
  fault: (words: string) => void,
): void {
  if (call.question) fault('a call was started while a person is asked about it');
  else if (call.wasAsked && !call.mayStart) fault('a call was started without an approval');
  else if (risk === 'risky' && call.starts > 0 && !call.wasAsked) fault('a risky call was started again');
  if (risk === 'safe' && call.starts > 0 && !rerun) fault('a call was started again without a mark');
  if (risk === 'safe' && call.starts > 1) fault('a safe call was started a third time');
  call.starts += 1;
  call.mayStart = false;
}
