import { z } from 'zod';
import { connect, readConnectionFile } from '../../src/client/index.ts'; // in your own project: 'parleyd/client'

/**
 * Asks an agent with a tool of this program, and gets a value instead of a text.
 *
 *   node --import tsx examples/post/ask.ts "Which articles must be ordered?"     (PARLEY_DATA: the data directory; default: data)
 */
const [, , content = 'Which articles must be ordered?'] = process.argv;
const client = await connect(await readConnectionFile(process.env.PARLEY_DATA || 'data'));
try {
  const { value } = await client.ask({
    ...{ conversation: `stock-${Date.now()}`, publisher: 'shop', content },
    tools: {
      stock: {
        description: 'how many pieces of an article are in stock',
        parameters: z.object({ article: z.enum(['lamp', 'chair']) }),
        run: ({ article }) => ({ pieces: article === 'lamp' ? 0 : 12 }),
      },
    },
    schema: z.object({ order: z.array(z.string()), because: z.string() }),
  });
  process.stdout.write(`order ${value.order.join(', ') || 'nothing'}: ${value.because}\n`);
} finally {
  await client.close();
}
