/** Two agents that do on request what the console can show. */

export const AGENTS = {
  lead: '---\nname: Lena Lead\ndescription: leads\ntools: [ask, handoff, delegate, set_phase, fs_write, fs_read]\n---\nYou lead.',
  dev: '---\nname: Dev <b>Ops</b>\ndescription: builds\nphases: [execute]\ntools: [handoff]\n---\nYou build.',
};

/** A reply that calls these tools. */
export const calls = (...tools: (readonly [string, object])[]) => ({
  tool_calls: tools.map(([name, parameters]) => ({ name, arguments: parameters })),
});

export const NASTY =
  '<img src=x onerror="document.title=1"><script>document.title=2</script> [go](javascript:document.title=3) ![pixel](https://evil.example/pixel.png) <style>*{display:none}</style> [ok](https://example.org/) <a href="data:text/html,x">y</a>';

export const RULES = [
  {
    when: { last: '/slowly/' },
    reply: { text: `${'word '.repeat(160)}**at last**.`, delayMs: 25 },
  },
  {
    when: { last: '/for a while/' },
    reply: { text: `${'word '.repeat(90)}**at last**.`, delayMs: 25 },
  },
  {
    when: { last: '/write it/' },
    reply: calls(['fs_write', { path: '@project/note.md', content: 'kept' }]),
  },
  { when: { tool: 'fs_write' }, reply: { text: 'That is what came of it: {{last}}' } },
  { when: { last: '/read it/' }, reply: calls(['fs_read', { path: '@project/nasty.md' }]) },
  { when: { tool: 'fs_read' }, reply: { text: 'I have read it.' } },
  {
    when: { last: '/ask me/' },
    reply: {
      text: 'One thing first.',
      ...calls(['ask', { question: 'Which colour?', options: ['red', 'blue'] }]),
    },
  },
  {
    when: { last: '/ask both/' },
    reply: calls(
      ['ask', { question: 'Which size?', options: ['small', 'large'] }],
      ['ask', { question: 'Which form?', options: ['round', 'flat'] }],
    ),
  },
  { when: { tool: 'ask' }, reply: { text: 'So it is {{last}}.' } },
  {
    when: { last: '/delegate it/' },
    reply: { text: 'I ask around.', ...calls(['delegate', { to: 'dev', request: 'How large is it?' }]) },
  },
  { when: { tool: 'delegate' }, reply: { text: 'Dev says it is small.' } },
  { when: { agent: 'dev', last: '/How large/' }, reply: { text: 'An hour.' } },
  {
    when: { last: '/hand it over/' },
    reply: calls(['handoff', { to: 'dev', summary: 'Please build it.', phase: 'execute' }]),
  },
  { when: { agent: 'dev', last: '/Please build/' }, reply: { text: 'Built.' } },
  { when: { last: '/nasty/' }, reply: { text: NASTY } },
  {
    when: { last: '/show code/' },
    reply: { text: '```js\nconst one = 1;\n```\n\n| a | b |\n|--:|:-:|\n| 1 | 2 |' },
  },
  { reply: { text: 'Noted: {{last}}' } },
];
