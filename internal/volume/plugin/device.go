package plugin

import "context"

// Stager is a kind with volumes that are made ready once for all pods of the node.
type Stager interface {
	// DeviceID names what is staged, the same for all pods that share it and never the same
	// for two that do not; "" where the volume has nothing to stage.
	DeviceID(ctx context.Context, s Spec) (string, error)
	// Stage is called before SetUp or MapDevice, for the first pod and after every restart
	// of the agent. What is already staged is left alone. Calls for one device never
	// overlap, with each other or with SetUp, TearDown and Unstage of a volume made from it.
	Stage(ctx context.Context, r Request) error
	// DeviceOf tells by the disk what the volume was made from; "" for nothing that was
	// staged. An error says that the disk does not tell of this volume.
	DeviceOf(p Published) (string, error)
	// Staged lists by the disk what is staged, also half way.
	Staged() ([]string, error)
	// Unstage is called after the last TearDown, with what DeviceID or Staged named. It may
	// be repeated after success, failure or a crash at any line.
	Unstage(ctx context.Context, id string) error
}

// DeviceMatcher is a Stager that can rule out devices where DeviceOf fails.
type DeviceMatcher interface {
	// MayUse reports whether the volume may be made from the device.
	MayUse(p Published, id string) (bool, error)
}

// BlockMapper is a kind whose volumes can be handed over as raw devices.
type BlockMapper interface {
	// MapDevice takes the place of SetUp for a raw block volume. Its result names a device
	// that opens until TearDown. The links to it in the pod's folder and below MapDir are the
	// caller's: one in the pod's folder is there before, and until TearDown has succeeded.
	MapDevice(ctx context.Context, r Request) (Result, error)
	// MapDir is the folder outside of pods that holds one entry per pod that uses the raw
	// volume, such as ROOT/plugins/kubernetes.io/local-volume/volumeDevices/PV.
	MapDir(volumeName string) string
}

// HeldFinder is a BlockMapper whose folders are not named for volumes.
type HeldFinder interface {
	// HeldFor finds by the disk what MapDir named when the volume was mapped; "" for
	// nothing.
	HeldFor(p Published) (dir string, err error)
}
