package conformance

import (
	"context"

	"swiftlet/test/bed"
)

// machineMemory is the memory of a machine in MiB. It also holds the images.
const machineMemory = 3072

// startMachine starts a machine that pulls the suite's images. It calls stopped when the machine has
// stopped.
func startMachine(ctx context.Context, b *bed.Bed, registry *bed.Registry, options Options, stopped func(error)) error {
	machine, err := b.AddMachine(ctx, "node-1")
	if err != nil {
		return err
	}
	if err := machine.Mirror(Registry, registry); err != nil {
		return err
	}
	if err := machine.Start(ctx, machineMemory, options.kubelet(), stopped); err != nil {
		return err
	}
	return machine.WaitReady(ctx)
}
