package why

// Class is what went wrong in a step. It determines the sentence and the object to change.
type Class string

// Classes of failures. Where a comment names an object, Error.Object is that.
const (
	Unclassified Class = ""

	// Images.
	ImageNotFound       Class = "ImageNotFound"
	ImageUnauthorized   Class = "ImageUnauthorized"
	ImageNameInvalid    Class = "ImageNameInvalid"
	ImageNotPresent     Class = "ImageNotPresent" // and the pull policy is Never
	ImageSignature      Class = "ImageSignature"
	ImagePullStalled    Class = "ImagePullStalled"
	PullRateExceeded    Class = "PullRateExceeded"
	RegistryUnavailable Class = "RegistryUnavailable"
	CredentialsFailed   Class = "CredentialsFailed"

	// Objects of the API server: KIND NAMESPACE/NAME.
	ObjectNotFound       Class = "ObjectNotFound"
	ObjectForbidden      Class = "ObjectForbidden"
	KeyNotFound          Class = "KeyNotFound" // key KEY in KIND NAMESPACE/NAME
	APIServerUnreachable Class = "APIServerUnreachable"
	ServicesNotRead      Class = "ServicesNotRead"

	// Volumes.
	ClaimNotBound       Class = "ClaimNotBound" // PersistentVolumeClaim
	ClaimDeleted        Class = "ClaimDeleted"  // PersistentVolumeClaim
	ClaimNotOurs        Class = "ClaimNotOurs"  // PersistentVolume or PersistentVolumeClaim
	VolumeNotAttached   Class = "VolumeNotAttached"
	VolumeModeMismatch  Class = "VolumeModeMismatch"
	VolumeElsewhere     Class = "VolumeElsewhere" // the node affinity of a PersistentVolume
	VolumeTooLarge      Class = "VolumeTooLarge"
	DriverNotRegistered Class = "DriverNotRegistered" // name of a CSI driver
	NoVolumePlugin      Class = "NoVolumePlugin"
	ProgramMissing      Class = "ProgramMissing"   // name of the program
	HostPathMismatch    Class = "HostPathMismatch" // path
	SubPathInvalid      Class = "SubPathInvalid"
	NoAnswer            Class = "NoAnswer" // a file system, server or driver hangs
	DeviceBusy          Class = "DeviceBusy"
	StillMounted        Class = "StillMounted" // path
	NoSpace             Class = "NoSpace"

	// The container runtime.
	RuntimeUnavailable   Class = "RuntimeUnavailable"
	Timeout              Class = "Timeout"
	SandboxFailed        Class = "SandboxFailed"
	RuntimeClassNotFound Class = "RuntimeClassNotFound"
	UserInvalid          Class = "UserInvalid"
	EnvironmentInvalid   Class = "EnvironmentInvalid"
	ConfigInvalid        Class = "ConfigInvalid"
	CreateFailed         Class = "CreateFailed"
	StartFailed          Class = "StartFailed"
	HookFailed           Class = "HookFailed"
	StillRunning         Class = "StillRunning"

	// Devices and claims.
	WaitsForDevice Class = "WaitsForDevice"

	// Probes.
	ProbeFailed  Class = "ProbeFailed"  // the probe's answer is negative
	ProbeNoReply Class = "ProbeNoReply" // no answer within the timeout
	ProbeRefused Class = "ProbeRefused" // nothing listens
	ProbeError   Class = "ProbeError"   // it could not be run
)

// Error gives an error a class. Its text is that of the error.
type Error struct {
	Class Class
	// Object is what the error is about, "" where the step says it.
	Object string
	Err    error
}

// Because returns err with a class, nil for nil.
func Because(class Class, object string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{class, object, err}
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// MissingKey is the error for a key that an object does not have.
func MissingKey(key, kind, namespace, name string, err error) error {
	return Because(KeyNotFound, "key "+key+" in "+kind+" "+namespace+"/"+name, err)
}

// Why returns the class and the object of the error. One without a class has that of its cause.
func (e *Error) Why() (Class, string) {
	if e.Class == Unclassified {
		return Of(e.Err)
	}
	return e.Class, e.Object
}
