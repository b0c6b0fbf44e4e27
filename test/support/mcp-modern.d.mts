import type { McpServer } from '@modelcontextprotocol/server';

export function modernServer(options?: { readonly onCancelled?: () => void }): McpServer;
