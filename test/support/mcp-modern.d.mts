import type { McpServer } from '@modelcontextprotocol/server';

export function modernServer(options?: {
  readonly onHanging?: () => void;
  readonly onCancelled?: () => void;
}): McpServer;
