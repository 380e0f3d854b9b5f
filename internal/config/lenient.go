package config

import "slices"

// ignore turns the errors of some classes into notices, if the configuration is loaded leniently. It
// returns the other errors.
//
// The reference kubelet decodes its configuration file strictly. If that finds only unknown or
// duplicate fields, it logs them and decodes the file leniently. It refuses drop-ins with duplicate
// fields, and ignores unknown fields of drop-ins without a log line.
func (c *Config) ignore(errs Errors, classes ...problemClass) (left Errors) {
	if !c.lenient {
		return errs
	}
	for _, e := range errs.sorted() {
		if slices.Contains(classes, e.class) {
			c.Notices = append(c.Notices, e.notice())
		} else {
			left = append(left, e)
		}
	}
	return left
}

// notice is the error of a field that does not keep the kubelet from starting.
func (e *FieldError) notice() string {
	if e.class == duplicateField {
		return e.Error() + "; the last value applies"
	}
	ignored := *e
	ignored.Message = "ignored, " + e.Message
	return ignored.Error()
}
