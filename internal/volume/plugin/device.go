package plugin

import "context"

// Stager is a kind whose volumes are staged once for all pods of the node.
type Stager interface {
	// DeviceID identifies what is staged: it is equal for volumes that share a device and
	// different for others. It is "" for a volume that is not staged.
	DeviceID(ctx context.Context, s Spec) (string, error)
	// Stage is called before SetUp or MapDevice, for the first pod and after every restart of
	// the agent. It is idempotent. Calls for one device never overlap, neither with each other
	// nor with SetUp, TearDown and Unstage of its volumes.
	Stage(ctx context.Context, r Request) error
	// DeviceOf finds the device of the volume from what is on disk; "" if none was staged. An
	// error means that the device cannot be determined.
	DeviceOf(p Published) (string, error)
	// Staged lists the devices that are staged, also partially, from what is on disk.
	Staged() ([]string, error)
	// Unstage is called after the last TearDown, with an ID from DeviceID or Staged. It is
	// idempotent, also after a crash at any line.
	Unstage(ctx context.Context, id string) error
}

// DeviceMatcher is a Stager that can exclude devices when DeviceOf fails.
type DeviceMatcher interface {
	// MayUse reports whether the volume may use the device.
	MayUse(p Published, id string) (bool, error)
}

// BlockMapper is a kind whose volumes can be raw block volumes.
type BlockMapper interface {
	// MapDevice replaces SetUp for a raw block volume. Its result names a device that can be
	// opened until TearDown. The caller creates the links in the pod's directory and below
	// MapDir; the one in the pod's directory exists from before the call until TearDown has
	// succeeded.
	MapDevice(ctx context.Context, r Request) (Result, error)
	// MapDir is the directory outside of the pods' directories with one entry per pod that uses
	// the raw block volume, such as ROOT/plugins/kubernetes.io/local-volume/volumeDevices/PV.
	MapDir(volumeName string) string
}

// MapDirFinder is a BlockMapper whose MapDir cannot be derived from the volume's name.
type MapDirFinder interface {
	// FindMapDir finds the MapDir of a mapped volume from what is on disk; "" if there is none.
	FindMapDir(p Published) (dir string, err error)
}
