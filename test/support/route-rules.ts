/** The rules of the scripted agents of tests, for their `script.yaml`. */

/** The reply to a message that matches `last`, in a turn as `more` says. */
export function on<Reply extends object>(last: string, reply: Reply, more: object = {}) {
  return { when: { ...more, last }, reply };
}

export const call = (text: string, tool: string, args: object) => ({
  text,
  tool_calls: [{ name: tool, arguments: args }],
});

/** A safe call, once. */
export const LOOKS = on('/look/', call('Let me look.', 'fs_list', { path: '@project/' }), {
  agent: 'lead',
  n: 0,
});

export const GIVES = on('/give/', call('Dev does it.', 'handoff', { to: 'dev', summary: 's' }), {
  agent: 'lead',
});

/** A model whose answer breaks off. */
export const FAILS = on('/fail/', {
  text: 'So far',
  error: { code: 'MODEL_ERROR', message: 'out of order' },
});

export const SLOW = on('/slow/', {
  text: 'One word after another comes here and there and on',
  delayMs: 100,
});
