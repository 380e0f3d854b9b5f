package plugin

// DriverNamer is a kind whose volumes are served by drivers, which metrics and stats name.
type DriverNamer interface {
	// DriverName is the driver that serves the volume, which is of this kind.
	DriverName(s Spec) string
}
