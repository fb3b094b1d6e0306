import { Command } from 'commander'
import { print, printJson } from '../output.js'
import { addSettings, applyConfig, checkEnvironment, configSchema } from '../serve/settings.js'
import type { ServeOptions } from '../serve/options.js'

/** Options of `serve` that are not settings of the service. */
interface StartOptions {
  readonly config?: string
  readonly checkConfig?: boolean
  readonly configSchema?: boolean
}

/** `serve`: runs the lock service, alone or as a member of a cluster. */
export function serveCommand(): Command {
  return addSettings(new Command('serve'))
    .description('run the lock service')
    .option('--config <file>', 'a JSON file with settings; options and environment variables override it')
    .option('--check-config', 'check all settings and the files that they name, without a start')
    .option('--config-schema', 'print the JSON Schema of the config file')
    .option('--json', 'print the ready line, or the result of the check, as JSON')
    .addHelpText(
      'after',
      `
Prints one line when it is ready. SIGTERM and SIGINT stop it; no acknowledged command is lost.

Examples:
  $ leasehold serve --data ./data --listen 127.0.0.1:4100
  $ leasehold serve --config /etc/leasehold.json --check-config
  $ leasehold serve --data ./n1 --listen 127.0.0.1:4101 --name n1 --peer-listen 127.0.0.1:5101 \\
      --cluster n1=127.0.0.1:5101,n2=127.0.0.1:5102,n3=127.0.0.1:5103`,
    )
    .action(async (start: StartOptions, command: Command) => {
      if (start.configSchema === true) return printJson(configSchema())
      checkEnvironment()
      if (start.config !== undefined) applyConfig(command, start.config)
      const options = command.opts<ServeOptions>()
      // Loaded here, so that the other commands start without it.
      const { checkServe, serve } = await import('../serve/run-service.js')
      if (start.checkConfig !== true) return await serve(options)
      await checkServe(options)
      if (options.json === true) return printJson({ ok: true })
      return print('the settings are valid')
    })
}
