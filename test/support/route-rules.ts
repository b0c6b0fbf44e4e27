/** The rules of the scripted agents in the tests of HTTP routes, for their `script.yaml`. */

export const call = (text: string, tool: string, args: object) => ({
  text,
  tool_calls: [{ name: tool, arguments: args }],
});

/** A safe call, once. */
export const LOOKS = {
  when: { agent: 'lead', last: '/look/', n: 0 },
  reply: call('Let me look.', 'fs_list', { path: '@project/' }),
};

export const GIVES = {
  when: { agent: 'lead', last: '/give/' },
  reply: call('Dev does it.', 'handoff', { to: 'dev', summary: 's' }),
};

/** A model whose answer breaks off. */
export const FAILS = {
  when: { last: '/fail/' },
  reply: { text: 'So far', error: { code: 'MODEL_ERROR', message: 'out of order' } },
};
