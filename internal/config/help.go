package config

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

// Usage returns the help of all flags by heading, wrapped at width. Deprecated flags are last, with
// the name of their field in the configuration file.
func Usage(width int) string {
	flags := defaultFlags()
	kc := flagDefaults(nil)
	c := bind(&flags, &kc)
	var out strings.Builder
	for _, heading := range c.order {
		c.writeGroup(&out, heading, heading, false, width)
	}
	fmt.Fprintf(&out, "\nThe flags below are deprecated; most have a field in the file given by --config, named in brackets.\n")
	for _, heading := range c.order {
		c.writeGroup(&out, heading, heading+" (deprecated)", true, width)
	}
	return out.String()
}

func (c *commandLine) writeGroup(out *strings.Builder, heading, title string, deprecated bool, width int) {
	group := pflag.NewFlagSet(heading, pflag.ContinueOnError)
	c.set.VisitAll(func(f *pflag.Flag) {
		if c.groups[f.Name] != heading || (f.Deprecated != "") != deprecated {
			return
		}
		listed := *f
		listed.Deprecated = "" // pflag would append it to every line
		listed.Usage = c.usage(f)
		group.AddFlag(&listed)
	})
	if group.HasFlags() {
		fmt.Fprintf(out, "\n%s:\n%s", title, group.FlagUsagesWrapped(width))
	}
}

func (c *commandLine) usage(f *pflag.Flag) string {
	usage := f.Usage
	if field := c.fields[f.Name]; field != "" && f.Deprecated != "" {
		usage += " [" + field + "]"
	} else if f.Deprecated != "" {
		usage += " [" + f.Deprecated + "]"
	}
	if reason := c.whyIneffective(f.Name); reason != "" {
		usage += " (no effect here: " + reason + ")"
	}
	return usage
}
