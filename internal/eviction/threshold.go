package eviction

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Threshold says how low a level may fall.
type Threshold struct {
	Signal Signal
	Least  Amount
	// Grace is how long the level may be lower before pods are evicted for it; a threshold
	// without is a hard one.
	Grace time.Duration
	// Margin is how far above Least the level must come before the threshold is no longer
	// met, once it was.
	Margin Amount
}

func (t Threshold) hard() bool { return t.Grace == 0 }

// floor is the level below which the threshold is met, or stays so.
func (t Threshold) floor(capacity int64, wasMet bool) int64 {
	floor := t.Least.of(capacity)
	if wasMet {
		floor += t.Margin.of(capacity)
	}
	return floor
}

// Amount is a quantity, or where that is nil a share of what there is in all.
type Amount struct {
	Quantity *resource.Quantity
	// Share is in single precision, as the reference kubelet has it, so that a swap of agents
	// does not move a threshold by some bytes.
	Share float32
}

func (a Amount) of(capacity int64) int64 {
	if a.Quantity != nil {
		return a.Quantity.Value()
	}
	return int64(float64(capacity) * float64(a.Share))
}

// text is how messages tell the amount.
func (a Amount) text(capacity int64) string {
	if a.Quantity != nil {
		return a.Quantity.String()
	}
	return resource.NewQuantity(a.of(capacity), resource.BinarySI).String()
}

// Settings are the fields of the configuration that thresholds are read from, by signal.
type Settings struct {
	Hard, Soft, SoftGracePeriod, MinimumReclaim map[string]string
	// Allocatable has the hard threshold of memory hold for what pods may use, too.
	Allocatable bool
}

// Thresholds reads the settings, most urgent first.
func (s Settings) Thresholds() ([]Threshold, error) {
	hard, err := s.parse("evictionHard", s.Hard)
	if err != nil {
		return nil, err
	}
	soft, err := s.parse("evictionSoft", s.Soft)
	if err != nil {
		return nil, err
	}
	for i := range soft {
		signal := string(soft[i].Signal)
		text, ok := s.SoftGracePeriod[signal]
		if !ok {
			return nil, fmt.Errorf("evictionSoft.%s: needs evictionSoftGracePeriod.%s", signal, signal)
		}
		if soft[i].Grace, err = time.ParseDuration(text); err != nil || soft[i].Grace < 0 {
			return nil, fmt.Errorf("evictionSoftGracePeriod.%s: %q is not a period of time", signal, text)
		}
	}
	all := append(hard, soft...)
	if s.Allocatable {
		for _, t := range all {
			if t.Signal == MemoryAvailable && t.hard() {
				t.Signal = AllocatableMemoryAvailable
				all = append(all, t)
			}
		}
	}
	return sorted(all), nil
}

func (s Settings) parse(field string, texts map[string]string) ([]Threshold, error) {
	var all []Threshold
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		signal, text := Signal(name), texts[name]
		if _, known := traits[signal]; !known {
			return nil, fmt.Errorf("%s.%s: is not an eviction signal", field, name)
		}
		if text == "0%" || text == "100%" {
			continue // this is how one is switched off
		}
		least, err := parseAmount(text)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", field, name, err)
		}
		t := Threshold{Signal: signal, Least: least}
		if text, ok := s.MinimumReclaim[name]; ok {
			if t.Margin, err = parseAmount(text); err != nil {
				return nil, fmt.Errorf("evictionMinimumReclaim.%s: %w", name, err)
			}
		}
		all = append(all, t)
	}
	return all, nil
}

func parseAmount(text string) (Amount, error) {
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		number, err := strconv.ParseFloat(percent, 32)
		if err != nil {
			return Amount{}, fmt.Errorf("%q is not a percentage", text)
		}
		if number < 0 || number > 100 {
			return Amount{}, fmt.Errorf("%q is not between 0%% and 100%%", text)
		}
		return Amount{Share: float32(number) / 100}, nil
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil {
		return Amount{}, fmt.Errorf("%q is not a quantity", text)
	}
	if quantity.Sign() < 0 {
		return Amount{}, errors.New("must not be negative")
	}
	return Amount{Quantity: &quantity}, nil
}

// sorted puts the most urgent first, hard before soft.
func sorted(all []Threshold) []Threshold {
	slices.SortStableFunc(all, func(a, b Threshold) int {
		return cmp.Or(slices.Index(order, a.Signal)-slices.Index(order, b.Signal), cmp.Compare(a.Grace, b.Grace))
	})
	return all
}
