import { Command } from 'commander'
import { callService } from '../call-service.js'
import { print, printJson } from '../output.js'
import { type ServiceOptions, serviceCommand } from '../service-client.js'

/** `renew HANDLE`: renews a hold of `acquire` once. */
export function renewCommand(): Command {
  return serviceCommand(new Command('renew').argument('<handle>', 'the handle that acquire printed'))
    .description('renew a hold by its handle')
    .addHelpText('after', '\nExample:\n  $ leasehold renew "$HANDLE" || echo "the hold is gone"')
    .action(async (hold: string, options: ServiceOptions) => {
      const answer = (await callService(options, '/v1/renew', { hold }, { repeatable: true })) as {
        expiresInMs: number
      }
      if (options.json === true) printJson(answer)
      else print(`renewed, for ${answer.expiresInMs} ms`)
    })
}
