import type { AGENT_CARD_PATH } from '@a2a-js/sdk';
import type { Application } from '../context.ts';

const CARD_PATH: typeof AGENT_CARD_PATH = '.well-known/agent-card.json';

/**
 * `/a2a/<agent>`: an agent for other agents, over JSON-RPC. A context is a conversation, a task is a post and its turn.
 * The protocol's package is loaded at the first request.
 */
export function addA2aRoutes(app: Application): void {
  const requests = () => import('./requests.ts');
  app.get('/a2a', async (context) => (await requests()).listAgents(context));
  app.get(`/${CARD_PATH}`, async (context) => (await requests()).card(context));
  app.get(`/a2a/:agent/${CARD_PATH}`, async (context) =>
    (await requests()).card(context, context.req.param('agent')),
  );
  app.post('/a2a/:agent', async (context) => (await requests()).answer(context, context.req.param('agent')));
}
