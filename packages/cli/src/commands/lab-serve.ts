import { Command } from 'commander'
import { note, print, printJson } from '../output.js'
import type { Listen } from '../serve/options.js'
import { readListen } from '../serve/settings.js'

/** `lab serve`: serves the lab as a web page. */
export function labServeSubcommand(): Command {
  return new Command('serve')
    .description('serve the lab as a web page, to pause, kill, cut and change clocks with the mouse')
    .option('--listen <host:port>', 'the address; port 0 chooses a free port', readListen, {
      host: '127.0.0.1',
      port: 0,
    })
    .option('--json', 'print the ready line as JSON')
    .addHelpText(
      'after',
      `
The page runs the production code in the browser; this server sends its files only.
Prints one line with its address when it is ready; stop it with Ctrl-C.

Example:
  $ leasehold lab serve --listen 127.0.0.1:4110`,
    )
    .action(async ({ listen, json }: { readonly listen: Listen; readonly json?: boolean }) => {
      const { preparePage, servePage } = await import('../lab-page.js')
      const served = await servePage(await preparePage(note), listen)
      if (json === true) printJson({ url: served.url })
      else print(`the lab is at ${served.url} (stop with Ctrl-C)`)
      await new Promise<void>((stop) => {
        process.once('SIGINT', () => stop()).once('SIGTERM', () => stop())
      })
      await served.close()
    })
}
