package redis

import (
	"strconv"
	"strings"
	"sync"
)

// slots is how many a cluster has.
const slots = 16384

// hashTag is the part of a key that a cluster hashes instead of the whole.
func hashTag(key string) (string, bool) {
	_, after, _ := strings.Cut(key, "{")
	tag, _, ok := strings.Cut(after, "}")
	return tag, ok && tag != ""
}

// slotTag is the least number, in decimal, that a cluster puts into the same slot
// as a key without a hash tag.
func slotTag(key string) string { return strconv.Itoa(slotTags()[slot(key)]) }

var slotTags = sync.OnceValue(func() []int {
	tags := make([]int, slots)
	for n, left := 1, slots; left > 0; n++ {
		if s := slot(strconv.Itoa(n)); tags[s] == 0 {
			tags[s] = n
			left--
		}
	}
	return tags
})

// slot is the slot of what is hashed: its CRC-16 in the variant XMODEM, as the
// specification of Redis Cluster has it.
func slot(hashed string) int {
	var crc uint16
	for i := range len(hashed) {
		crc ^= uint16(hashed[i]) << 8
		for range 8 {
			carry := crc & 0x8000
			crc <<= 1
			if carry != 0 {
				crc ^= 0x1021
			}
		}
	}
	return int(crc) % slots
}
