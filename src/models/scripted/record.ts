import { parse, stringify } from 'yaml';
import { type Entry, type MessageEntry, splitFailedAnswer } from '../../conversation/index.ts';

/**
 * The script that repeats the answers of a conversation.
 *
 * RECORD-1 One rule for each answer of an agent, in order: the same posts get the same texts and calls. A rule for an answer
 *    that failed fails with the same code, without another attempt.
 * RECORD-2 Texts and arguments are verbatim. An object replaces the text of arguments only if it becomes the same text again.
 */
export function recordedScript(conversation: string, entries: readonly Entry[]): string {
  const answers = entries.filter(isAnswer);
  const head = `# Recorded from the conversation ${conversation}: each rule is one answer, in order.\nrules:\n`;
  const rules = answers.map((answer) => {
    const rule = { when: { agent: answer.author.id, n: 0 }, reply: replyOf(answer) };
    return `  # entry ${answer.index}\n${stringify([rule], { lineWidth: 0 }).replace(/^(?=.)/gm, '  ')}`;
  });
  return head + rules.join('');
}

function isAnswer(entry: Entry): entry is MessageEntry {
  return entry.type === 'message' && entry.role === 'assistant' && entry.author.kind === 'agent';
}

function replyOf({ content, tool_calls: calls = [], finishReason }: MessageEntry) {
  const { text, error } = failureIn(content ?? '');
  const reason = finishReason ?? (calls.length > 0 ? 'tool_calls' : 'stop');
  const isUsual = reason === (calls.length > 0 ? 'tool_calls' : 'stop') && (text !== '' || calls.length > 0);
  return {
    verbatim: true,
    ...(text === '' ? {} : { text }),
    ...(calls.length === 0 ? {} : { tool_calls: calls.map(({ function: called }) => callOf(called)) }),
    ...(error ? { error } : isUsual ? {} : { finishReason: reason }),
  };
}

function callOf({ name, arguments: text }: { readonly name: string; readonly arguments: string }) {
  return { name, arguments: asObject(text) ?? text };
}

function asObject(text: string): object | null {
  try {
    const compact = text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1');
    const value: unknown = parse(stringify(JSON.parse(text), { lineWidth: 0 }));
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
    if (text.includes('__proto__')) return null; // the schema of scripts drops this key
    return isObject && JSON.stringify(value) === compact ? value : null;
  } catch {
    return null;
  }
}

/** An entry of a failed call: its partial text, and the failure on its last line. */
function failureIn(content: string) {
  const { text, failure } = splitFailedAnswer(content);
  return failure ? { text, error: { ...failure, status: 400 } } : { text }; // This status is not retried.
}
