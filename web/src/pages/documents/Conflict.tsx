/** The file was changed by somebody else: what they changed, and whose text is to stay. */
import { TextDiff } from "@/editor/YamlEditor";
import { Button, Dialog } from "@/ui";
import { useNarrow } from "./narrow";
import type { FileText } from "./queries";

interface Props {
  mine: string;
  theirs: FileText;
  isBusy: boolean;
  onClose: () => void;
  /** Writes the editor's text over the file as it is now. */
  onKeepMine: () => void;
  /** Puts the file's text into the editor. */
  onTakeTheirs: () => void;
}

export function Conflict({ mine, theirs, isBusy, onClose, onKeepMine, onTakeTheirs }: Props) {
  const isNarrow = useNarrow();
  return (
    <Dialog
      isOpen
      onClose={onClose}
      size="wide"
      title="The file has changed since it was opened"
      actions={
        <>
          <Button onClick={onClose}>Back to the editor</Button>
          <Button onClick={onTakeTheirs}>Take the file&rsquo;s text</Button>
          <Button look="danger" isBusy={isBusy} onClick={onKeepMine}>
            Overwrite the file with mine
          </Button>
        </>
      }
    >
      <p>
        Nothing was saved. Something else wrote <code>{theirs.path}</code> in the meantime; saving would undo that.
        {isNarrow && " Lines in red are only in the file; lines in green are only in the editor."}
      </p>
      <div className="conflict-diff">
        <TextDiff
          before={theirs.text}
          after={mine}
          beforeLabel="The file now"
          afterLabel="In the editor"
          isUnified={isNarrow}
        />
      </div>
    </Dialog>
  );
}
