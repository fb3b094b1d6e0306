import { Command } from 'commander'
import { callService } from '../call-service.js'
import { print, printJson } from '../output.js'
import { type ServiceOptions, serviceCommand } from '../service-client.js'

/** `release HANDLE`: releases a hold of `acquire`. */
export function releaseCommand(): Command {
  return serviceCommand(new Command('release').argument('<handle>', 'the handle that acquire printed'))
    .description('release a hold by its handle; exit 76 if it has already ended')
    .addHelpText('after', '\nExample:\n  $ leasehold release "$HANDLE"')
    .action(async (hold: string, options: ServiceOptions) => {
      await callService(options, '/v1/release', { hold })
      if (options.json === true) printJson({ released: true })
      else print('released')
    })
}
