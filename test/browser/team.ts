import { on } from '../support/route-rules.ts';

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
  on('/slowly/', { text: `${'word '.repeat(160)}**at last**.`, delayMs: 25 }),
  on('/for a while/', { text: `${'word '.repeat(90)}**at last**.`, delayMs: 25 }),
  on('/write it/', calls(['fs_write', { path: '@project/note.md', content: 'kept' }])),
  { when: { tool: 'fs_write' }, reply: { text: 'That is what came of it: {{last}}' } },
  on('/read it/', calls(['fs_read', { path: '@project/nasty.md' }])),
  { when: { tool: 'fs_read' }, reply: { text: 'I have read it.' } },
  on('/ask me/', {
    text: 'One thing first.',
    ...calls(['ask', { question: 'Which colour?', options: ['red', 'blue'] }]),
  }),
  on(
    '/ask both/',
    calls(
      ['ask', { question: 'Which size?', options: ['small', 'large'] }],
      ['ask', { question: 'Which form?', options: ['round', 'flat'] }],
    ),
  ),
  { when: { tool: 'ask' }, reply: { text: 'So it is {{last}}.' } },
  on('/delegate it/', {
    text: 'I ask around.',
    ...calls(['delegate', { to: 'dev', request: 'How large is it?' }]),
  }),
  { when: { tool: 'delegate' }, reply: { text: 'Dev says it is small.' } },
  { when: { agent: 'dev', last: '/How large/' }, reply: { text: 'An hour.' } },
  on('/hand it over/', calls(['handoff', { to: 'dev', summary: 'Please build it.', phase: 'execute' }])),
  { when: { agent: 'dev', last: '/Please build/' }, reply: { text: 'Built.' } },
  on('/nasty/', { text: NASTY }),
  on('/show code/', { text: '```js\nconst one = 1;\n```\n\n| a | b |\n|--:|:-:|\n| 1 | 2 |' }),
  { reply: { text: 'Noted: {{last}}' } },
];

export const SMALL_WORKFLOW = {
  'workflows/small.yaml': `id: small
start: plan
nodes:
  plan: { agent: lead, brief: Plan it., outcomes: { planned: build } }
  build: { agent: dev, brief: Build it., outcomes: { built: end } }
`,
};
