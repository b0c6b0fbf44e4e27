// The tools `mcp__orders__find` and `mcp__orders__refund`. Replace the table with your own system.
import { serve } from './mcp.mjs';

const ORDERS = new Map([
  ['1001', { item: 'a tea pot', euros: 35, state: 'delivered last week' }],
  ['1002', { item: 'two cups', euros: 18, state: 'on its way' }],
]);

function orderOf(number) {
  const order = ORDERS.get(number);
  if (!order) throw new Error(`There is no order ${number}.`);
  return order;
}

const order = { type: 'string', description: 'the number of the order' };

await serve('orders', {
  find: {
    description: 'Returns the item, the price and the state of an order.',
    arguments: { order },
    run: ({ order: number }) => {
      const { item, euros, state } = orderOf(number);
      return `Order ${number}: ${item} for ${euros} euros, ${state}.`;
    },
  },
  refund: {
    description: 'Refunds an order in full.',
    arguments: { order },
    run: ({ order: number }) => {
      const found = orderOf(number);
      if (found.state === 'refunded') return `Order ${number} was refunded before.`;
      found.state = 'refunded';
      return `Order ${number} is refunded: ${found.euros} euros.`;
    },
  },
});
