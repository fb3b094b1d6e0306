import { createHash } from 'node:crypto'
import { STATUS_BODY, STATUS_SCRIPT, STATUS_STYLE } from '../status-page.js'

const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Leasehold</title>
<link rel="icon" href="data:,">
<style>${STATUS_STYLE}</style>
</head>
<body>${STATUS_BODY}<script>${STATUS_SCRIPT}</script></body>
</html>
`

const hash = (text: string) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`

/** The page may run its own script and talk to its own server, nothing else. */
const policy = [
  "default-src 'none'",
  `script-src ${hash(STATUS_SCRIPT)}`,
  `style-src ${hash(STATUS_STYLE)}`,
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

const headers = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': policy,
  'referrer-policy': 'no-referrer',
}

/** The page at `/`: who holds what, who waits, as `/v1/locks` tells it. */
export function statusPage(): Response {
  return new Response(page, { headers })
}
