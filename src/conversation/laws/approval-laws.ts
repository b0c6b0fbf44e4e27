import type { CallPlace, Entry } from '../log/entry.ts';

/** What any log must satisfy in the calls that a person is asked about, and in how often a call is started. */

interface Call {
  /** The question that is open, and whether it says that the call may have happened. */
  question: { readonly id: string; readonly mayHaveRun: boolean } | null;
  wasAsked: boolean;
  /** A person's word that it may be run, not used yet. */
  mayStart: boolean;
  starts: number;
}

const ANSWERS_TO_FRESH: readonly string[] = ['approve', 'deny'];
const ANSWERS_TO_UNKNOWN: readonly string[] = ['rerun', 'result', 'failed'];

/** L11, L12: one question at a time, one answer to each, one start for each word; a repetition is marked. */
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
      if (entry.mayHaveRun !== call.starts > 0) fault('the question is wrong about whether it may have run');
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
  else if (call.wasAsked && !call.mayStart) fault('a call was started without a word of a person');
  else if (risk === 'risky' && call.starts > 0 && !call.wasAsked) fault('a risky call was started again');
  if (risk === 'safe' && call.starts > 0 && !rerun) fault('a call was started again without a mark');
  if (risk === 'safe' && call.starts > 1) fault('a safe call was started a third time');
  call.starts += 1;
  call.mayStart = false;
}
