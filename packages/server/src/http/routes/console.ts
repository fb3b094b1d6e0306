import { consolePage } from '../console-page.js'
import { originsOf } from '../../security/index.js'
import type { Services } from '../services.js'

const MISSING = `<!doctype html>
<meta charset="utf-8">
<title>Leasehold</title>
<h1>The console is not built</h1>
<p>The service works: its API is under <a href="/openapi.json">/v1</a>, and the commands can do everything that the console can.</p>
<p>In a clone, <code>npm run build</code> builds the page; then restart the service.</p>
`

/** Serves the console without credentials: the page contains no data, and asks for a key if the service requires one. */
export function consoleResponse({ cluster }: Services, headers: Headers): Response {
  const page = consolePage()
  if (page === undefined) {
    const html = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': "default-src 'none'" }
    return new Response(MISSING, { status: 503, headers: html })
  }
  const own = {
    etag: page.etag,
    // Browsers revalidate every time, so a new version of the service is shown at once.
    'cache-control': 'no-cache',
    vary: 'accept-encoding',
    'content-security-policy': policy(page, originsOf(cluster?.members.map((member) => member.url) ?? [])),
    'referrer-policy': 'no-referrer',
    'x-frame-options': 'DENY',
  }
  if (headers.get('if-none-match') === page.etag) return new Response(null, { status: 304, headers: own })
  const zipped = /\bgzip\b/.test(headers.get('accept-encoding') ?? '')
  return new Response(Uint8Array.from(zipped ? page.gzip : page.html), {
    headers: {
      ...own,
      'content-type': 'text/html; charset=utf-8',
      ...(zipped ? { 'content-encoding': 'gzip' } : {}),
    },
  })
}

/** The content security policy: the page runs only its inline code, and connects only to members of its cluster. */
function policy({ scripts, styles }: { scripts: string; styles: string }, members: readonly string[]): string {
  return [
    "default-src 'none'",
    `script-src ${scripts}`,
    `style-src ${styles}`,
    'img-src data:',
    `connect-src 'self' ${members.join(' ')}`.trimEnd(),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ')
}
