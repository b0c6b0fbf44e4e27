import { NAME_PATTERN } from '../../conversation/index.ts';
import { ParleyError } from '../../kernel/index.ts';
import type { Application, RouteContext } from '../context.ts';
import { Channels } from './channel.ts';
import { bodyOf, Reader, startOf } from './reader.ts';

export interface EventRouteOptions {
  readonly heartbeatMs: number;
  readonly onFault: (error: unknown, path: string) => void;
}

/** `/api/conversations/<id>/events`: log and live text as server-sent events. */
export function addEventRoutes(
  app: Application,
  routes: RouteContext,
  { heartbeatMs, onFault }: EventRouteOptions,
): void {
  const channels = new Channels();
  app.get('/api/conversations/:conversation/events', (context) => {
    const conversation = context.req.param('conversation');
    if (!NAME_PATTERN.test(conversation)) {
      throw new ParleyError('INVALID_NAME', `${JSON.stringify(conversation)} is no conversation`, {
        hint: 'use 1 to 128 letters, digits, _ or -',
      });
    }
    const from = startOf(context.req.header('last-event-id'), context.req.query('from'));
    const reader = new Reader({
      daemon: routes.daemon(),
      channels,
      conversation,
      from,
      heartbeatMs,
      closing: routes.closing,
      onFault: (error) => onFault(error, context.req.path),
    });
    return new Response(bodyOf(reader), {
      headers: { 'content-type': 'text/event-stream; charset=utf-8' },
    });
  });
}
