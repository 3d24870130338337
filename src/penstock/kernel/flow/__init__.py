"""The component half of the kernel: links settle, nodes turn green, sub-jobs close. Pure, like the rest of it."""
